package container

import (
	"context"
	"net"
	"net/netip"
)

// Outside is a host beyond all networks of a machine, which is its router.
type Outside struct {
	// Addr is where it accepts connections.
	Addr     netip.AddrPort
	listener net.Listener
}

// NewOutside makes such a host.
func NewOutside(machine *Namespace) (*Outside, error) {
	network, err := NewNetwork(machine, "internet", netip.MustParsePrefix("198.51.100.0/24"), false)
	if err != nil {
		return nil, err
	}
	host, err := NewNamespace()
	if err != nil {
		return nil, err
	}
	addr, err := network.Attach(host)
	if err != nil {
		return nil, err
	}
	o := &Outside{Addr: netip.AddrPortFrom(addr, 443)}
	err = host.Do(func() (err error) {
		o.listener, err = net.Listen("tcp", o.Addr.String())
		return err
	})
	return o, err
}

// Close ends it.
func (o *Outside) Close() error { return o.listener.Close() }

// Reaches fails when a connection cannot be made from a namespace.
func (n *Namespace) Reaches(ctx context.Context, addr netip.AddrPort) error {
	conn, err := n.Dial(ctx, "tcp", addr.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// Dial connects to an address, which is no name, from the namespace.
func (n *Namespace) Dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	err = n.Do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}
