package connlimit

import (
	"net"
	"time"
)

// conn releases its connection slot on Close.
type conn struct {
	net.Conn
	ready   *ready // nil if the system does not support it
	release func()

	expiry *time.Timer // closes a connection of the operators' reserve; nil for others
	refuse func()      // reports a connection of the reserve that is no operator's
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.release()
	if c.expiry != nil {
		c.expiry.Stop()
	}
	return c.Conn.Close()
}

// addr is an address that leads back to its connection.
type addr struct {
	net.Addr
	filter *filter
}
