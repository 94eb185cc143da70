package guard

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
)

// conn gives its place back when it is closed, and knows about how much its peer has not read.
//
// The transport takes an answer whole, and keeps it until the peer reads it; the call is over and no longer counts
// among the connection's. A peer that calls and never reads would have the server keep answers without end.
type conn struct {
	net.Conn
	ready       *ready // nil where the system cannot tell
	release     func()
	unreadBytes int64

	written atomic.Int64
	// What will have been written, at least, when all answers so far are.
	owed atomic.Int64
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn. It leads from a call's peer back to the connection.
func (c *conn) RemoteAddr() net.Addr { return addr{Addr: c.Conn.RemoteAddr(), conn: c} }

// addr is an address that leads back to its connection, as far as there is one of each kind.
type addr struct {
	net.Addr
	conn   *conn
	filter *filter
}

// owe counts an answer, and drops the connection if too much is unread. It is no exact account: what else is written
// counts as read answers, and answers to calls that are cancelled just then are never written; a peer that is dropped
// for those connects again.
func (c *conn) owe(answerBytes int) {
	for {
		owed, written := c.owed.Load(), c.written.Load()
		next := max(owed, written) + int64(answerBytes)
		if !c.owed.CompareAndSwap(owed, next) {
			continue
		}
		if next-written > c.unreadBytes {
			_ = c.Close()
		}
		return
	}
}

// answered counts the answer to a call.
func answered(ctx context.Context, response any) {
	m, isMessage := response.(proto.Message)
	p, hasPeer := peer.FromContext(ctx)
	if !isMessage || !hasPeer || ctx.Err() != nil {
		return
	}
	if a, is := p.Addr.(addr); is && a.conn != nil {
		a.conn.owe(proto.Size(m))
	}
}
