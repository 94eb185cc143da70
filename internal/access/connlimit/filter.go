package connlimit

import (
	"context"
	"encoding/binary"
	"net"
	"time"

	"golang.org/x/net/http2"
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

// frames parses the HTTP/2 frames of a peer, however they are split, and assigns each part of a message to its call.
// It must be used by one goroutine.
type frames struct {
	preface int // remaining bytes of the connection preface
	head    [9]byte
	headed  int // received bytes of the frame header
	left    int // remaining bytes of the frame payload
	padding int // padding bytes at the end of the payload; -1 = in the first payload byte
	kind    http2.FrameType
	flags   http2.Flags
	stream  uint32

	// opened is the call whose headers have just arrived, if its request is still to come; 0 = none.
	opened uint32
	calls  map[uint32]*intake
	max    int // number of calls at which ended ones are removed
}

func newFrames(streams uint32) *frames {
	return &frames{preface: len(http2.ClientPreface), calls: map[uint32]*intake{}, max: 2 * int(streams)}
}

// scan parses b and returns how many bytes may be passed on now. It stops at the end of a call's headers, so that the
// server decides about that call before its message is parsed. An error ends the connection.
func (f *frames) scan(b []byte) (n int, err error) {
	for n < len(b) {
		switch {
		case f.preface > 0:
			skip := min(f.preface, len(b)-n)
			f.preface -= skip
			n += skip
		case f.headed < len(f.head):
			took := copy(f.head[f.headed:], b[n:])
			f.headed += took
			n += took
			if f.headed == len(f.head) {
				f.begin()
			}
		default:
			took := min(f.left, len(b)-n)
			if err := f.payload(b[n : n+took]); err != nil {
				return 0, err
			}
			f.left -= took
			n += took
		}
		if f.headed == len(f.head) && f.left == 0 && f.end() {
			return n, nil
		}
	}
	return n, nil
}

// begin parses a frame header.
func (f *frames) begin() {
	head := binary.BigEndian.Uint32(f.head[:4])
	f.left, f.kind, f.flags = int(head>>8), http2.FrameType(head), http2.Flags(f.head[4])
	f.stream = binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)
	f.padding = 0
	if f.kind == http2.FrameData && f.flags.Has(http2.FlagDataPadded) {
		f.padding = -1
	}
	if f.kind == http2.FrameHeaders {
		f.opened = f.stream
		if f.flags.Has(http2.FlagHeadersEndStream) {
			f.opened = 0
		}
	}
}

// payload handles a part of a frame's payload before it is passed on.
func (f *frames) payload(b []byte) error {
	call := f.calls[f.stream]
	if f.kind != http2.FrameData || call == nil || len(b) == 0 {
		return nil
	}
	left := f.left
	if err := call.receive(len(b)); err != nil {
		return err
	}
	if f.padding < 0 {
		f.padding = int(b[0])
		b, left = b[1:], left-1
	}
	return call.follow(b[:min(len(b), max(0, left-f.padding))])
}

// end finishes a frame, and reports whether it was the last header frame of a call.
func (f *frames) end() (opened bool) {
	f.headed = 0
	switch f.kind {
	case http2.FrameHeaders, http2.FrameContinuation:
		return f.flags.Has(http2.FlagHeadersEndHeaders)
	case http2.FrameData:
		if f.flags.Has(http2.FlagDataEndStream) {
			delete(f.calls, f.stream)
		}
	case http2.FrameRSTStream:
		delete(f.calls, f.stream)
	}
	return false
}

// open assigns the request of the last headers to a call.
func (f *frames) open(call *intake) {
	if f.opened == 0 {
		return
	}
	f.calls[f.opened] = call
	if len(f.calls) > f.max { // calls that ended here before their requests did, of peers that send nothing more
		for stream, c := range f.calls {
			if c.ctx.Err() != nil {
				delete(f.calls, stream)
			}
		}
	}
}
