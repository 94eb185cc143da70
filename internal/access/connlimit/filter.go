package connlimit

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
)

// filter is a connection, decrypted, what comes on which is counted before the server gets it.
type filter struct {
	net.Conn
	frames *frames
	held   int64 // what the connection's requests hold, guarded by the room's lock
	unread *unread

	// rest has come, and is passed on when the server has dealt with what came before.
	rest []byte
	buf  *[]byte // of which the rest is a part; nil = there is none
}

// readyReader is a connection that takes a buffer only when there is something to read.
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

// ReadOnReady is asked for by gRPC's transport in place of Read.
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
		return buf, n, nil // an error comes again with the next read
	}
	pool.Put(buf)
	return nil, 0, err
}

// pass says how much of what comes next may be passed on now, and keeps what comes after it.
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

// RemoteAddr implements net.Conn. It leads from a call's peer back to the connection.
func (f *filter) RemoteAddr() net.Addr {
	return addr{Addr: f.Conn.RemoteAddr(), filter: f}
}

// Close implements net.Conn.
func (f *filter) Close() error {
	defer f.unread.close()
	return f.Conn.Close()
}

// filterOf is the filter of a call's connection; nil if it has none.
func filterOf(ctx context.Context) *filter {
	if p, is := peer.FromContext(ctx); is {
		if a, is := p.Addr.(addr); is {
			return a.filter
		}
	}
	return nil
}

// filtering puts a filter on each connection that has shaken hands.
type filtering struct {
	credentials.TransportCredentials
	streams uint32
	unread  time.Duration // how long a peer may leave a message unread
}

// ServerHandshake implements credentials.TransportCredentials.
func (c filtering) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	f := &filter{Conn: conn, frames: newFrames(c.streams)}
	f.unread = &unread{limit: c.unread, end: func() { _ = f.Close() }}
	return f, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c filtering) Clone() credentials.TransportCredentials {
	return filtering{c.TransportCredentials.Clone(), c.streams, c.unread}
}
