package compose

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// makeNetworks makes a bridge for each network.
func (f *Farm) makeNetworks() error {
	if err := container.Forward(f.Machine.Net); err != nil {
		return err
	}
	f.networks = map[string]*container.Network{}
	for i, name := range f.Project.NetworkNames() {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 30, byte(i), 0}), 24)
		n, err := container.NewNetwork(f.Machine.Net, name, prefix, f.Project.Networks[name].Internal)
		if err != nil {
			return err
		}
		f.networks[name] = n
	}
	return nil
}

// connect gives a service's container its cards, and the names that it can ask for.
func (f *Farm) connect(s types.ServiceConfig, r *Running) error {
	space, err := container.NewNamespace()
	if err != nil {
		return err
	}
	r.Net, r.Addrs = space, map[string]netip.Addr{}
	if s.NetworkMode == "none" {
		return nil
	}
	if s.NetworkMode != "" {
		return fmt.Errorf("service %s: the network mode %s is not understood", s.Name, s.NetworkMode)
	}
	for _, name := range networksOf(s) {
		if r.Addrs[name], err = f.networks[name].Attach(space); err != nil {
			return err
		}
	}
	_, err = container.ServeNames(space, container.NameServerAddr,
		func(name string) ([]netip.Addr, bool) { return f.lookup(s, name) })
	return err
}

// lookup has the names of services and containers of the networks that a service is at.
func (f *Farm) lookup(asker types.ServiceConfig, name string) (addrs []netip.Addr, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, network := range networksOf(asker) {
		for service, list := range f.running {
			for _, r := range list {
				if addr, at := r.Addrs[network]; at && (service == name || r.Name == name) {
					addrs = append(addrs, addr)
				}
			}
		}
		if len(addrs) > 0 {
			return addrs, true
		}
	}
	return nil, false
}

func networksOf(s types.ServiceConfig) (names []string) {
	for name := range s.Networks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// publish opens a service's ports on the machine. Those of a service that is at internal networks only lead nowhere.
func (f *Farm) publish(s types.ServiceConfig, r *Running) error {
	for _, p := range s.Ports {
		to := netip.Addr{}
		for name, addr := range r.Addrs {
			if !f.networks[name].Internal {
				to = addr
			}
		}
		if !to.IsValid() {
			return fmt.Errorf("service %s publishes the port %d, and is at no network that is published", s.Name, p.Target)
		}
		listener, err := container.Publish(f.Machine.Net, net.JoinHostPort(p.HostIP, p.Published),
			net.JoinHostPort(to.String(), strconv.Itoa(int(p.Target))))
		if err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
		r.published = append(r.published, listener)
	}
	return nil
}
