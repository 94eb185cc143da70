package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// trackers holds the processes that serve a farm: one, or several that share a database.
type trackers []*process

const (
	// anyPort is the default listen address of a tracker.
	anyPort = "127.0.0.1:0"
	// sharesTimeout exceeds the time to distribute all shards of the first tracker, one at a time.
	sharesTimeout = 2 * time.Minute
	// sharesEvery is the polling interval.
	sharesEvery = 200 * time.Millisecond
)

// trackers returns the configured trackers without starting them.
func (o *Options) trackers() (all trackers) {
	for range o.Trackers {
		all = append(all, &process{command: slices.Concat(o.Launcher, o.Tracker), orders: orders{
			Dir: o.Dir, Listen: anyPort, HTTP: cmp.Or(o.HTTP, anyPort), Store: o.Store, Shards: o.Shards,
		}})
	}
	return all
}

// each calls do for all trackers concurrently.
func (t trackers) each(do func(*process) error) error {
	failed := make([]error, len(t))
	var all sync.WaitGroup
	for i, p := range t {
		all.Go(func() { failed[i] = do(p) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// start starts all trackers and waits until they have distributed the shards.
func (t trackers) start(ctx context.Context) error {
	if err := t.each(func(p *process) error { return p.start(ctx) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, sharesTimeout, errors.New("they have not shared out the shards in time"))
	defer cancel()
	tick := time.NewTicker(sharesEvery)
	defer tick.Stop()
	for {
		if shared, err := t.shared(); shared || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the trackers: %w", context.Cause(ctx))
		}
	}
}

// shared reports whether all shards are served and no tracker exceeds its share.
func (t trackers) shared() (bool, error) {
	want, total := t[0].orders.Shards, 0
	for _, p := range t {
		active, err := readMetric(p.addr.HTTP, "tilth_tracker_active")
		has := int(active)
		if err != nil || has*len(t) >= want+len(t) {
			return false, err
		}
		total += has
	}
	return total == want, nil
}

// kill kills all trackers.
func (t trackers) kill() error { return t.each((*process).kill) }

// addresses returns the comma-separated addresses of all trackers.
func (t trackers) addresses() string {
	var all []string
	for _, p := range t {
		all = append(all, p.addr.GRPC)
	}
	return strings.Join(all, ",")
}

// usage returns the totals of each tracker.
func (t trackers) usage() (all []usage, err error) {
	for _, p := range t {
		u, err := p.usage()
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// restart measures how long killed trackers take until all shards answer, in seconds. It then stops them again.
func (t trackers) restart(ctx context.Context) (float64, error) {
	began := time.Now()
	if err := t.each(func(p *process) error { return p.start(ctx) }); err != nil {
		return 0, errors.Join(err, t.kill())
	}
	conn, err := agent.Dial(t.addresses())
	if err != nil {
		return 0, errors.Join(err, t.kill())
	}
	_, err = tilthv1.NewJobServiceClient(conn).ListOwners(ctx, &tilthv1.ListOwnersRequest{}) // a call to every shard
	took := time.Since(began).Seconds()
	if err != nil {
		err = fmt.Errorf("ask the trackers after their restart: %w", err)
	}
	return took, errors.Join(err, conn.Close(), t.kill())
}
