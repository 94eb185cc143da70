package compose

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// probe is a health check with the engine's defaults for what it does not say.
func probe(check *types.HealthCheckConfig, c *container.Container) (*container.Probe, error) {
	if check == nil || check.Disable {
		return nil, nil
	}
	var command []string
	switch {
	case len(check.Test) > 1 && check.Test[0] == "CMD":
		command = check.Test[1:]
	case len(check.Test) == 2 && check.Test[0] == "CMD-SHELL":
		command = []string{"/bin/sh", "-c", check.Test[1]}
	default:
		return nil, fmt.Errorf("the health check %q is not understood", check.Test)
	}
	p := &container.Probe{
		Interval: orDefault(check.Interval, 30*time.Second), Timeout: orDefault(check.Timeout, 30*time.Second), Retries: 3,
		StartPeriod: orDefault(check.StartPeriod, 0), StartInterval: orDefault(check.StartInterval, 5*time.Second),
	}
	if check.Retries != nil {
		p.Retries = int(*check.Retries)
	}
	p.Delay = p.Interval
	if p.StartPeriod > 0 {
		p.Delay = p.StartInterval
	}
	p.Test = func(ctx context.Context) error {
		_, err := c.Exec(ctx, command...)
		return err
	}
	return p, nil
}

func orDefault(said *types.Duration, usual time.Duration) time.Duration {
	if said == nil {
		return usual
	}
	return time.Duration(*said)
}

// watch checks the container's health from now on, until it is well.
func (r *Running) watch(ctx context.Context) {
	if r.Probe == nil {
		r.healthy = func() error { return nil }
		return
	}
	first := make(chan error, 1)
	go func() { first <- r.Probe.Await(ctx, r.Container) }()
	r.healthy = sync.OnceValue(func() error { return <-first })
}
