package connlimit

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
)

// filter is a decrypted connection that counts incoming bytes before the server receives them.
type filter struct {
	net.Conn
	frames *frames
	held   int64 // bytes held by the connection's requests, guarded by the budget's mutex
	unread *unread
	of     *conn // nil without a limit on connections

	// rest has been received, and is passed on once the server has processed what came before.
	rest []byte
	buf  *[]byte // contains rest; nil = none
}

// readyReader is a connection that allocates a buffer only when data can be read.
type readyReader interface {
	ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error)
}

var restPool = mem.DefaultBufferPool()

// Read implements net.Conn.
func (f *filter) Read(b []byte) (n int, err error) {
	if f.buf == nil {
		n, err = f.Conn.Read(b)
	} else {
		n = copy(b, f.rest)
	}
	if n == 0 {
		return n, err
	}
	return f.pass(b[:n])
}

// ReadOnReady is called by the gRPC transport in place of Read.
func (f *filter) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buf, n, err := f.next(size, pool)
	if err != nil {
		return nil, 0, err
	}
	if n, err = f.pass((*buf)[:n]); err != nil {
		pool.Put(buf)
		return nil, 0, err
	}
	return buf, n, nil
}

func (f *filter) next(size int, pool mem.BufferPool) (*[]byte, int, error) {
	r, is := f.Conn.(readyReader)
	if f.buf == nil && is {
		return r.ReadOnReady(size, pool)
	}
	buf := pool.Get(size)
	if f.buf != nil {
		return buf, copy(*buf, f.rest), nil
	}
	n, err := f.Conn.Read(*buf)
	if n > 0 {
		return buf, n, nil // the next read returns the error again
	}
	pool.Put(buf)
	return nil, 0, err
}

// pass returns how much of b may be passed on now, and keeps the rest.
func (f *filter) pass(b []byte) (int, error) {
	n, err := f.frames.scan(b)
	if err != nil {
		return 0, err
	}
	switch {
	case f.buf != nil:
		if f.rest = f.rest[n:]; len(f.rest) == 0 {
			restPool.Put(f.buf)
			f.buf, f.rest = nil, nil
		}
	case n < len(b):
		f.buf = restPool.Get(len(b) - n)
		f.rest = (*f.buf)[:copy(*f.buf, b[n:])]
	}
	return n, nil
}

// RemoteAddr implements net.Conn. The address leads from a call's peer back to the connection.
func (f *filter) RemoteAddr() net.Addr {
	return addr{Addr: f.Conn.RemoteAddr(), filter: f}
}

// Close implements net.Conn.
func (f *filter) Close() error {
	defer f.unread.close()
	return f.Conn.Close()
}

// filterOf returns the filter of a call's connection, or nil.
func filterOf(ctx context.Context) *filter {
	if p, is := peer.FromContext(ctx); is {
		if a, is := p.Addr.(addr); is {
			return a.filter
		}
	}
	return nil
}

// filtering wraps each connection in a filter after its handshake.
type filtering struct {
	credentials.TransportCredentials
	streams uint32
	unread  time.Duration // how long a peer may leave a message unread
}

// ServerHandshake implements credentials.TransportCredentials.
func (c filtering) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	shaken, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	f := &filter{Conn: shaken, frames: newFrames(c.streams)}
	f.of, _ = raw.(*conn)
	f.unread = &unread{limit: c.unread, end: func() { _ = f.Close() }}
	return f, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c filtering) Clone() credentials.TransportCredentials {
	return filtering{c.TransportCredentials.Clone(), c.streams, c.unread}
}
