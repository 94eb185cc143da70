package connlimit

import "net"

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	ready   *ready // nil where the system cannot tell
	release func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// addr is an address that leads back to its connection.
type addr struct {
	net.Addr
	filter *filter
}
