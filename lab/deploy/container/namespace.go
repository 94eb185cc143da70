package container

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace is a network namespace. It exists while it is open or in use.
type Namespace struct {
	handle netns.NsHandle
	link   *netlink.Handle
	// cards counts the interfaces that Network.Attach made.
	cards int
	// routed is set once it has a gateway.
	routed bool
}

// NewNamespace makes one with its own loopback.
func NewNamespace() (*Namespace, error) {
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	defer own.Close()
	handle, err := netns.New()
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	if err := netns.Set(own); err != nil {
		return nil, fmt.Errorf("leave the network namespace: %w", err)
	}
	// Had the thread not come back, it would stay locked, and end with this goroutine.
	runtime.UnlockOSThread()
	link, err := netlink.NewHandleAt(handle)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	n := &Namespace{handle: handle, link: link}
	lo, err := link.LinkByName("lo")
	if err == nil {
		err = link.LinkSetUp(lo)
	}
	if err != nil {
		return nil, fmt.Errorf("loopback: %w", err)
	}
	return n, nil
}

// Close gives the namespace back.
func (n *Namespace) Close() error {
	n.link.Close()
	return n.handle.Close()
}

// Path is where other processes of this PID namespace find it.
func (n *Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(n.handle)) }

// Do calls f in the namespace: sockets that it opens and processes that it starts are in it.
func (n *Namespace) Do(f func() error) error {
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		return err
	}
	defer own.Close()
	if err := netns.Set(n.handle); err != nil {
		return fmt.Errorf("enter the network namespace: %w", err)
	}
	failed := f()
	if err := netns.Set(own); err != nil {
		return fmt.Errorf("leave the network namespace: %w", err)
	}
	runtime.UnlockOSThread()
	return failed
}

// setAddress gives an interface its address and brings it up.
func (n *Namespace) setAddress(name string, address netip.Prefix) error {
	link, err := n.link.LinkByName(name)
	if err == nil {
		err = n.link.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address)})
	}
	if err == nil {
		err = n.link.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("address %s of %s: %w", address, name, err)
	}
	return nil
}

// setGateway sets the default route, unless there is one, like Docker.
func (n *Namespace) setGateway(gateway netip.Addr) error {
	if n.routed {
		return nil
	}
	n.routed = true
	if err := n.link.RouteAdd(&netlink.Route{Gw: net.IP(gateway.AsSlice())}); err != nil {
		return fmt.Errorf("gateway %s: %w", gateway, err)
	}
	return nil
}

func (n *Namespace) nextCard() string {
	n.cards++
	return "eth" + strconv.Itoa(n.cards-1)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// tryNetwork makes what networks are made of.
func tryNetwork() error {
	n, err := NewNamespace()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.link.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "left"}, PeerName: "right"})
}
