package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// collectPercent is the GOGC value of the simulation.
const collectPercent = 400

// Run simulates a farm, kills its trackers and returns the result. The data stay in Dir, if it is set, or in the
// database.
func Run(ctx context.Context, o Options) (*Details, error) {
	o.SetDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Tracker == nil {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		o.Tracker = []string{program, TrackerCommand}
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "tilth-simulate-")
		if err != nil {
			return nil, fmt.Errorf("folder for the simulated tracker's data: %w: name one with --data", err)
		}
		defer os.RemoveAll(dir)
		o.Dir = dir
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder of the simulated tracker: %w", err)
	}
	db, err := openDatabase(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	defer db.close(ctx)
	if o.Records > 0 {
		if err := o.fill(ctx); err != nil {
			return nil, err
		}
	}
	// The simulation has many long-lived and short-lived objects. Garbage collection would otherwise take a quarter
	// of its time.
	defer debug.SetGCPercent(debug.SetGCPercent(collectPercent))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := o.trackers()
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.kill())
	}
	d, ledger, err := o.load(ctx, t, db)
	if err != nil {
		return nil, errors.Join(err, t.kill())
	}
	if d.RestartSeconds, err = t.restart(ctx); err != nil {
		return nil, err
	}
	return d, o.check(ctx, ledger, d)
}

func (o *Options) path() string { return filepath.Join(o.Dir, recordsName) }

// openNew opens the store before a tracker is started.
func (o *Options) openNew() (records.Store, error) {
	kind, err := farm.StoreKindOf(o.Store)
	if err != nil {
		return nil, err
	}
	return kind.Open(o.Store, o.path())
}

// openStopped opens the store after all trackers have ended. For a database it opens one shard, which can read the
// jobs of all.
func (o *Options) openStopped(ctx context.Context) (records.Store, error) {
	kind, err := farm.StoreKindOf(o.Store)
	switch {
	case err != nil:
		return nil, err
	case o.Store == "":
		return bolt.OpenReadOnly(o.path(), bolt.Options{})
	}
	return kind.Shard(ctx, o.Store, farm.StoreShard{Count: o.Shards})
}

// load runs the farm on trackers and kills them at the end, under load.
func (o *Options) load(ctx context.Context, t trackers, db *database) (*Details, *ledger, error) {
	f, err := newFleet(ctx, *o, t.addresses())
	if err != nil {
		return nil, nil, err
	}
	err = f.begin(ctx)
	var d *Details
	if err == nil {
		d, err = f.watch(ctx, t, db)
	}
	if err == nil {
		err = t.kill()
	}
	return d, f.ledger, errors.Join(err, f.end())
}

// moment is a snapshot of all totals.
type moment struct {
	at       time.Time
	agents   float64 // processor time, in seconds
	results  map[string]int
	trackers []usage
	database databaseUsage
}

func (f *fleet) moment(ctx context.Context, t trackers, db *database) (m moment, err error) {
	if m.trackers, err = t.usage(); err != nil {
		return m, err
	}
	m.database, err = db.usage(ctx)
	m.results, m.agents, m.at = f.ledger.acknowledged(), ownCPU(), time.Now()
	return m, err
}

// watch measures the farm after its warm-up.
func (f *fleet) watch(ctx context.Context, t trackers, db *database) (*Details, error) {
	if err := f.pass(ctx, f.Warmup); err != nil {
		return nil, err
	}
	before, err := f.moment(ctx, t, db)
	if err != nil {
		return nil, err
	}
	f.meter.begin()
	whom := newDice(f.Seed, math.MaxUint64)
	for killed := range f.Failures.Kills + 1 {
		if killed > 0 {
			p := t[whom.below(len(t))]
			if err := errors.Join(p.kill(), p.start(ctx)); err != nil {
				return nil, err
			}
		}
		if err := f.pass(ctx, f.Time/time.Duration(f.Failures.Kills+1)); err != nil {
			return nil, err
		}
	}
	calls, leases, reports := f.meter.end()
	after, err := f.moment(ctx, t, db)
	if err != nil {
		return nil, err
	}
	d := f.account(t, before, after)
	d.Leases, d.CallsPerSecond, d.ResultsPerReport = len(leases), float64(calls)/d.Seconds, float64(d.Results)/float64(max(1, len(reports)))
	d.LeaseP50, d.LeaseP99, d.ResultP99 = quantile(leases, 0.5), quantile(leases, 0.99), quantile(reports, 0.99)
	return d, nil
}

// account returns the differences between two snapshots.
func (f *fleet) account(t trackers, before, after moment) *Details {
	seconds := after.at.Sub(before.at).Seconds()
	d := &Details{
		Report: Report{Devices: f.Devices},
		Jobs:   f.Jobs, Agents: f.Options.agents(), Connections: f.Connections, Shards: f.Shards, RecordsBefore: f.Records, Seconds: seconds,
		Lives: f.lives.Load(), Kills: f.Failures.Kills,
	}
	var cpu, commits float64
	for i, p := range t {
		own := after.results[p.addr.GRPC] - before.results[p.addr.GRPC]
		d.Results += own
		cpu += after.trackers[i].CPU - before.trackers[i].CPU
		commits += after.trackers[i].Commits - before.trackers[i].Commits
		d.RSSBytes = max(d.RSSBytes, after.trackers[i].PeakRSS)
		d.RSSAnonymousBytes = max(d.RSSAnonymousBytes, after.trackers[i].Anonymous)
		if f.Store != "" {
			d.Trackers = append(d.Trackers, TrackerReport{ResultsPerSecond: float64(own) / seconds, RSSBytes: after.trackers[i].PeakRSS})
		}
	}
	results := float64(max(1, d.Results))
	d.ResultsPerSecond, d.FsyncsPerSecond, d.TrackerLoad = float64(d.Results)/seconds, 2*commits/seconds, cpu/seconds
	d.TrackerCPUSeconds, d.AgentsCPUSeconds = cpu/results, (after.agents-before.agents)/results
	if f.Store != "" {
		d.Database = &DatabaseReport{
			Transactions: float64(after.database.Transactions-before.database.Transactions) / results,
			CPUSeconds:   (after.database.CPU - before.database.CPU) / results,
		}
	}
	return d
}

// pass waits for d, or until an agent fails.
func (f *fleet) pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.failed.Done():
		return context.Cause(f.failed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// check compares the acknowledged data with the store.
func (o *Options) check(ctx context.Context, l *ledger, d *Details) error {
	db, err := o.openStopped(ctx)
	if err != nil {
		return err
	}
	v, err := l.compare(db)
	if err != nil {
		return errors.Join(fmt.Errorf("compare what is stored with what was acknowledged: %w", err), db.Close())
	}
	d.Lost, d.Duplicated = v.Lost, v.Duplicated
	d.FileBytes = db.SizeBytes()
	return db.Close()
}
