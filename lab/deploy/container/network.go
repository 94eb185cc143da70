package container

import (
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
)

// Network is a bridge of the machine. Containers at it reach each other.
type Network struct {
	// Internal gives containers no way beyond the network.
	Internal bool

	machine *Namespace
	bridge  string
	prefix  netip.Prefix
	mu      sync.Mutex
	last    netip.Addr
}

// NewNetwork makes a network of a machine. The machine has its first address, and is its router if it is not internal.
func NewNetwork(machine *Namespace, bridge string, prefix netip.Prefix, internal bool) (*Network, error) {
	n := &Network{Internal: internal, machine: machine, bridge: bridge, prefix: prefix, last: prefix.Addr().Next()}
	if err := machine.link.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}); err != nil {
		return nil, fmt.Errorf("bridge %s: %w", bridge, err)
	}
	if err := machine.setAddress(bridge, n.with(n.gateway())); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Network) gateway() netip.Addr               { return n.prefix.Addr().Next() }
func (n *Network) with(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, n.prefix.Bits()) }

// Attach gives a namespace a card at the network, and returns its address.
func (n *Network) Attach(space *Namespace) (netip.Addr, error) {
	n.mu.Lock()
	n.last = n.last.Next()
	addr := n.last
	n.mu.Unlock()
	bridge, err := n.machine.link.LinkByName(n.bridge)
	if err != nil {
		return addr, fmt.Errorf("bridge %s: %w", n.bridge, err)
	}
	card, wire := space.nextCard(), fmt.Sprintf("%s-%d", n.bridge, addr.As4()[3])
	err = n.machine.link.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: wire, MasterIndex: bridge.Attrs().Index},
		PeerName:  card, PeerNamespace: netlink.NsFd(int(space.handle)),
	})
	if err != nil {
		return addr, fmt.Errorf("wire to %s: %w", n.bridge, err)
	}
	port, err := n.machine.link.LinkByName(wire)
	if err == nil {
		err = n.machine.link.LinkSetUp(port)
	}
	if err != nil {
		return addr, fmt.Errorf("wire %s: %w", wire, err)
	}
	if err := space.setAddress(card, n.with(addr)); err != nil {
		return addr, err
	}
	if n.Internal {
		return addr, nil
	}
	return addr, space.setGateway(n.gateway())
}

// Forward makes the machine a router between its networks, as engines do.
func Forward(machine *Namespace) error {
	return machine.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
}
