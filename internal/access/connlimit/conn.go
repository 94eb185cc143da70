package connlimit

import "net"

// conn releases its connection slot on Close.
type conn struct {
	net.Conn
	ready   *ready // nil if the system does not support it
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
