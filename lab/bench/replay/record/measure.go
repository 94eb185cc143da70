package record

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/bench/replay"
	"github.com/tilth-dev/tilth/runner"
	"github.com/tilth-dev/tilth/tuner"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// measurer measures candidates of one workload.
type measurer struct {
	*Recorder
	device   *backend.Device
	workload *expr.Workload
	dir      string
	// calibration tracks disturbances of the machine.
	calibration runner.Calibration
	// best is the fastest point so far, or nil. Clearly slower candidates get few samples.
	best *replay.Point
}

func (m *measurer) note(p *replay.Point) {
	if l := p.LatencySeconds(); l > 0 && (m.best == nil || l < m.best.LatencySeconds()) {
		m.best = &replay.Point{Samples: slices.Clone(p.Samples)}
	}
}

// measure builds and times candidates. Each gets an outcome.
func (m *measurer) measure(ctx context.Context, list []replay.Candidate) ([]replay.Point, error) {
	if m.Sample > 0 {
		return m.turns(ctx, list, 1, &replay.Point{})
	}
	return m.turns(ctx, list, 1, cmp.Or(m.best, &replay.Point{}))
}

// turns builds candidates and times each for a number of rounds, in turns with the incumbent. An incumbent without
// samples is ignored.
func (m *measurer) turns(ctx context.Context, list []replay.Candidate, rounds int, incumbent *replay.Point) ([]replay.Point, error) {
	dir, err := os.MkdirTemp(m.dir, "batch-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	points, at := make([]replay.Point, len(list)), map[string]int{}
	batch := builder.Batch{Workload: m.workload, Target: m.Target}
	for k, c := range list {
		points[k].Origin, at[c.Digest] = c.Origin, k
		batch.Candidates = append(batch.Candidates, builder.Candidate{Digest: c.Digest, Trace: c.Trace})
	}
	built, err := m.build(ctx, dir, batch)
	if err != nil {
		return nil, err
	}
	for k, o := range built.Outcomes {
		points[k].Error, points[k].Message = wire.ErrorClass(o.Error), o.Message
	}
	if len(built.Objects) == 0 {
		return points, nil
	}
	release, err := m.Lock.Time(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for range rounds {
		err := runner.Measure(ctx, m.plan(built, incumbent), func(o runner.Outcome) { m.take(&points[at[o.Kernel]], o) })
		if err != nil {
			return nil, err
		}
	}
	return points, nil
}

func (m *measurer) build(ctx context.Context, dir string, batch builder.Batch) (*builder.Built, error) {
	release, err := m.Lock.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return m.Compiler.Build(ctx, dir, batch)
}

func (m *measurer) plan(built *builder.Built, incumbent *replay.Point) runner.Plan {
	return runner.Plan{Device: m.device, Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects, Alike: m.Sample > 0, // of what is learnt from, slow ones teach as much as fast ones
		Emulator: m.Launcher, Threads: m.Target.Threads(),
		Seed: 1, BestSeconds: incumbent.LatencySeconds(), BestSamples: incumbent.Samples, Calibration: &m.calibration, Sandbox: m.Sandbox, Limits: m.Limits,
		ReferenceCache: filepath.Join(m.dir, "reference-results")}
}

// take adds an outcome to a point. A single failure fails the point.
func (m *measurer) take(p *replay.Point, o runner.Outcome) {
	switch {
	case o.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE:
		p.Error, p.Message, p.Samples = wire.ErrorClass(o.Error), o.Message, nil
	case p.Error == "":
		p.Samples = append(p.Samples, o.Samples...)
		m.note(p)
	}
}

// pilot searches the whole space and returns the fastest tenth of its trials, fastest first.
func (m *measurer) pilot(ctx context.Context, whole *space.Space, trials int) (origins []string, err error) {
	search, err := tuner.NewSearch(whole, nil, tuner.Options{Algorithm: "ga", Seed: 1})
	if err != nil {
		return nil, err
	}
	var all []replay.Point
	for len(all) < trials {
		var list []replay.Candidate
		for _, c := range search.Propose(min(m.Batch, trials-len(all))) {
			list = append(list, replay.Candidate{Point: c.Point, Origin: c.Origin, Digest: c.Digest, Trace: c.Trace})
		}
		if len(list) == 0 {
			break
		}
		points, err := m.measure(ctx, list)
		if err != nil {
			return nil, err
		}
		for k, p := range points {
			search.Observe(tuner.Trial{Digest: list[k].Digest, Origin: p.Origin, LatencySeconds: p.LatencySeconds(), Failed: p.Error != ""})
		}
		all = append(all, points...)
	}
	for _, p := range fastest(all, (len(all)+9)/10) {
		origins = append(origins, p.Origin)
	}
	return origins, nil
}

// fastest returns up to n successful points, fastest first.
func fastest(points []replay.Point, n int) []replay.Point {
	list := slices.DeleteFunc(slices.Clone(points), func(p replay.Point) bool { return p.Error != "" })
	slices.SortStableFunc(list, func(a, b replay.Point) int { return cmp.Compare(a.LatencySeconds(), b.LatencySeconds()) })
	return list[:min(n, len(list))]
}
