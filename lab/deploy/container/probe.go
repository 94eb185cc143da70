package container

import (
	"context"
	"fmt"
	"time"
)

// Probe finds out whether a container is well, again and again.
type Probe struct {
	// Test fails while it is not.
	Test func(ctx context.Context) error
	// Delay is before the first test, Interval between tests, Timeout for each.
	Delay, Interval, Timeout time.Duration
	// Retries is how many failures in a row mean that it is not well.
	Retries int
	// StartPeriod is how long failures do not count after the start, while it is tested each StartInterval.
	StartPeriod, StartInterval time.Duration
}

// Await returns when a test passed. It fails when the container is not well, or ended.
func (p Probe) Await(ctx context.Context, c *Container) error {
	failures, started := 0, time.Now()
	next := time.NewTimer(p.Delay)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-c.done:
			return fmt.Errorf("container %s ended with status %d before it was well: %s", c.Name, c.ExitCode(), c.LastWords())
		case <-ctx.Done():
			return fmt.Errorf("container %s is not well yet: %w: %s", c.Name, context.Cause(ctx), c.LastWords())
		}
		err := p.Once(ctx)
		if err == nil {
			return nil
		}
		wait := p.Interval
		if time.Since(started) < p.StartPeriod {
			wait = p.StartInterval
		} else if failures++; failures >= p.Retries {
			return fmt.Errorf("container %s is not healthy: %w: %s", c.Name, err, c.LastWords())
		}
		next.Reset(wait)
	}
}

// Once tests once.
func (p Probe) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	return p.Test(ctx)
}
