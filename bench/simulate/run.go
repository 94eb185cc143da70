package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/tilth-dev/tilth/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
)

// collectPercent is how much may be made before the collector looks for garbage, in parts of what is in use.
const collectPercent = 400

// Run simulates a farm, kills its tracker and says what came of it. The data stay in Dir.
func Run(ctx context.Context, o Options) (*Details, error) {
	o.SetDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder of the simulated tracker: %w", err)
	}
	path := filepath.Join(o.Dir, recordsName)
	if o.Records > 0 {
		o.Logger.Info("filling the records file", "records", o.Records)
		if err := o.fill(ctx, path); err != nil {
			return nil, err
		}
	}
	// What is simulated is large, lives long and makes much that does not: the collector would take a quarter of its
	// time.
	defer debug.SetGCPercent(debug.SetGCPercent(collectPercent))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &process{command: o.Tracker, dir: o.Dir}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	d, ledger, err := o.load(ctx, p)
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	if d.RestartSeconds, err = p.restart(ctx); err != nil {
		return nil, err
	}
	return d, o.check(path, ledger, d)
}

// load runs the farm over a tracker and kills that at the end, under load.
func (o *Options) load(ctx context.Context, p *process) (*Details, *ledger, error) {
	f, err := newFleet(ctx, *o, p.addr.GRPC)
	if err != nil {
		return nil, nil, err
	}
	o.Logger.Info("agents join", "agents", o.agents(), "connections", o.Connections)
	err = f.begin(ctx)
	var d *Details
	if err == nil {
		o.Logger.Info("all agents have joined")
		d, err = f.watch(ctx, p)
	}
	if err == nil {
		err = p.kill()
	}
	return d, f.ledger, errors.Join(err, f.end())
}

// watch measures the farm, after its warm-up.
func (f *fleet) watch(ctx context.Context, p *process) (*Details, error) {
	if err := f.pass(ctx, f.Warmup); err != nil {
		return nil, err
	}
	before, err := p.usage()
	if err != nil {
		return nil, err
	}
	results, agents, began := f.ledger.acknowledged(), ownCPU(), time.Now()
	f.meter.begin()
	for killed := range f.Failures.Kills + 1 {
		if killed > 0 {
			if err := errors.Join(p.kill(), p.start(ctx)); err != nil {
				return nil, err
			}
		}
		if err := f.pass(ctx, f.Time/time.Duration(f.Failures.Kills+1)); err != nil {
			return nil, err
		}
	}
	calls, leases, reports := f.meter.end()
	after, err := p.usage()
	if err != nil {
		return nil, err
	}
	seconds := time.Since(began).Seconds()
	agents = ownCPU() - agents
	results = f.ledger.acknowledged() - results
	d := &Details{
		Jobs: f.Jobs, Agents: f.Options.agents(), Connections: f.Connections, RecordsBefore: f.Records, Results: results, Seconds: seconds,
		Leases: len(leases), CallsPerSecond: float64(calls) / seconds, Lives: f.lives.Load(), Kills: f.Failures.Kills,
		ResultsPerReport:       float64(results) / float64(max(1, len(reports))),
		TrackerCPUMicroseconds: 1e6 * (after.CPU - before.CPU) / float64(max(1, results)),
		TrackerLoad:            (after.CPU - before.CPU) / seconds,
		AgentsCPUMicroseconds:  1e6 * agents / float64(max(1, results)),
		RSSAnonymousBytes:      after.Anonymous,
	}
	d.Report = Report{
		Devices: f.Devices, ResultsPerSecond: float64(results) / seconds,
		LeaseP50: quantile(leases, 0.5), LeaseP99: quantile(leases, 0.99), ResultP99: quantile(reports, 0.99),
		RSSBytes: after.PeakRSS, FsyncsPerSecond: 2 * (after.Commits - before.Commits) / seconds,
	}
	return d, nil
}

// pass lets time go by, unless an agent cannot live.
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

// restart measures how long a killed tracker takes until it answers, in seconds, and stops it again.
func (p *process) restart(ctx context.Context) (float64, error) {
	began := time.Now()
	if err := p.start(ctx); err != nil {
		return 0, err
	}
	conn, err := agent.Dial(p.addr.GRPC)
	if err != nil {
		return 0, errors.Join(err, p.kill())
	}
	_, err = tilthv1.NewJobServiceClient(conn).ListJobs(ctx, &tilthv1.ListJobsRequest{Limit: 1})
	took := time.Since(began).Seconds()
	if err != nil {
		err = fmt.Errorf("ask the tracker after its restart: %w", err)
	}
	return took, errors.Join(err, conn.Close(), p.kill())
}

// check compares what was acknowledged with the records file.
func (o *Options) check(path string, l *ledger, d *Details) error {
	db, err := bolt.OpenReadOnly(path, bolt.Options{})
	if err != nil {
		return err
	}
	v, err := l.compare(db)
	if err != nil {
		return errors.Join(fmt.Errorf("compare the records file with what was acknowledged: %w", err), db.Close())
	}
	d.Lost, d.Duplicated = v.Lost, v.Duplicated
	d.FileBytes = db.SizeBytes()
	return db.Close()
}
