package compose

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// Farm is a project whose services run.
type Farm struct {
	Project *types.Project
	Machine *container.Machine
	Images  *Images

	networks map[string]*container.Network
	mu       sync.Mutex
	running  map[string][]*Running
}

// Running is a service's container.
type Running struct {
	*container.Container
	// Name is that of the container: PROJECT-SERVICE-NUMBER.
	Name string
	// Net is where it is, and Addrs its address in each network.
	Net   *container.Namespace
	Addrs map[string]netip.Addr
	// Probe is its health check, or nil.
	Probe *container.Probe
	// Grace is how long it may take to end.
	Grace time.Duration

	// healthy waits for the first check that passed.
	healthy   func() error
	published []net.Listener
}

// Up starts services in the order of what they depend on, and returns when all that have a health check passed it.
func (f *Farm) Up(ctx context.Context, services ...string) error {
	f.running = map[string][]*Running{}
	if err := f.makeNetworks(); err != nil {
		return err
	}
	err := f.Project.ForEachService(services, func(_ string, s *types.ServiceConfig) error {
		if err := f.awaitDependencies(ctx, s); err != nil {
			return err
		}
		for i := range s.GetScale() {
			if err := f.start(ctx, *s, fmt.Sprintf("%s-%s-%d", f.Project.Name, s.Name, i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.awaitHealth()
}

// Of are the containers of a service.
func (f *Farm) Of(service string) []*Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[service]
}

func (f *Farm) start(ctx context.Context, s types.ServiceConfig, name string) error {
	from, err := f.Images.Of(ctx, s)
	if err != nil {
		return fmt.Errorf("service %s: %w", s.Name, err)
	}
	r := &Running{Name: name, Grace: 10 * time.Second}
	if s.StopGracePeriod != nil {
		r.Grace = time.Duration(*s.StopGracePeriod)
	}
	c, err := f.spec(s, from, name)
	if err == nil {
		err = f.connect(s, r)
	}
	if err != nil {
		return err
	}
	c.Network = r.Net
	if r.Container, err = f.Machine.Start(c); err != nil {
		return err
	}
	if r.Probe, err = probe(s.HealthCheck, r.Container); err != nil {
		return fmt.Errorf("service %s: %w", s.Name, err)
	}
	r.watch(ctx)
	f.mu.Lock()
	f.running[s.Name] = append(f.running[s.Name], r)
	f.mu.Unlock()
	return f.publish(s, r)
}

func (f *Farm) awaitDependencies(ctx context.Context, s *types.ServiceConfig) error {
	for name, dependency := range s.DependsOn {
		for _, r := range f.Of(name) {
			var err error
			switch dependency.Condition {
			case types.ServiceConditionCompletedSuccessfully:
				err = r.Wait(ctx)
			case types.ServiceConditionHealthy:
				err = r.healthy()
			}
			if err != nil {
				return fmt.Errorf("service %s waits for %s: %w", s.Name, name, err)
			}
		}
	}
	return nil
}

func (f *Farm) awaitHealth() error {
	for _, name := range f.Project.ServiceNames() {
		for _, r := range f.Of(name) {
			if err := r.healthy(); err != nil {
				return err
			}
		}
	}
	return nil
}
