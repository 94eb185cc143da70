package operators

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/runner"
	"github.com/tilth-dev/tilth/tuner"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// task is a workload with its space and its measurements.
type task struct {
	workload
	space  *searchspace.Space
	dir    string
	search tuner.Search
	// untuned and best are the latencies of the default and the fastest schedule in seconds.
	untuned, best float64
	bestPoint     string
	fastest       builder.Candidate
	trials        int
	failures      []string
	pending       *batch
}

// title returns the task's name for messages.
func (t *task) title() string { return t.row("").title() }

// row returns the workload's table row without measurements.
func (w workload) row(version string) row {
	r := row{Operator: w.name, Shape: w.shape, Batch: w.batch, Version: version, Flop: w.flop}
	r.ConstantBytes, r.OtherBytes = roofline.Bytes(w.Workload)
	return r
}

// batch is a list of built candidates to measure.
type batch struct {
	candidates map[string]tuner.Candidate
	built      *builder.Built
}

// algorithm is the search algorithm of tuning.
const algorithm = "ga"

func newTask(w workload, b *suite) (*task, error) {
	s, err := registry.Space(w.Workload, b.target, w.numerics)
	if err != nil {
		return nil, err
	}
	t := &task{workload: w, space: s, dir: filepath.Join(b.scratch, fmt.Sprintf("%d-%v-%.16s", b.target.Threads(), w.numerics, w.Digest()))}
	if t.search, err = tuner.NewSearch(t.space, nil, tuner.Options{Algorithm: algorithm, Seed: 1}); err != nil {
		return nil, err
	}
	return t, os.MkdirAll(t.dir, 0o700)
}

// build compiles up to n candidates that the search proposes. The search is exhausted if nothing is pending
// afterwards. The first batch contains only the default schedule.
func (t *task) build(ctx context.Context, b *suite, n int) error {
	t.pending = nil
	proposed := t.search.Propose(n)
	if len(proposed) == 0 {
		return nil
	}
	list := builder.Batch{Workload: t.Workload, Target: b.target}
	p := &batch{candidates: map[string]tuner.Candidate{}}
	for _, c := range proposed {
		list.Candidates = append(list.Candidates, builder.Candidate{Digest: c.Digest, Trace: c.Trace})
		p.candidates[c.Digest] = c
	}
	var err error
	if p.built, err = b.compiler.Build(ctx, t.dir, list); err != nil {
		return fmt.Errorf("%s: %w", t.title(), err)
	}
	for _, o := range p.built.Outcomes {
		if o.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE {
			t.fail(p.candidates[o.Candidate], wire.ErrorClass(o.Error), o.Message)
		}
	}
	t.pending = p
	return nil
}

// measure times the built candidates and reports the results to the search.
func (t *task) measure(ctx context.Context, b *suite) error {
	if t.pending == nil {
		return nil
	}
	if len(t.pending.built.Objects) == 0 {
		return nil
	}
	if err := runner.Measure(ctx, b.plan(t, t.pending.built, t.best), t.observe); err != nil {
		return fmt.Errorf("%s: %w", t.title(), err)
	}
	return nil
}

// plan returns the measurement plan of built candidates. best is the lowest latency in seconds; candidates
// slower than it are dropped early; 0 means unknown.
func (b *suite) plan(t *task, built *builder.Built, best float64) runner.Plan {
	return runner.Plan{Device: b.backend.Device(b.target), Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects,
		Threads: b.target.Threads(), Seed: 1, BestSeconds: best, Limits: b.limits,
		ReferenceCache: filepath.Join(b.options.dir, "results-"+filepath.Base(built.Reference))}
}

func (t *task) observe(o runner.Outcome) {
	c := t.pending.candidates[o.Kernel]
	if o.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE {
		t.fail(c, wire.ErrorClass(o.Error), o.Message)
		return
	}
	t.trials++
	latency := stats.Of(o.Samples).Median
	t.search.Observe(tuner.Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: latency})
	if t.untuned == 0 {
		t.untuned = latency
	}
	if t.best == 0 || latency < t.best {
		t.best, t.bestPoint = latency, c.Origin
		t.fastest = builder.Candidate{Digest: c.Digest, Trace: c.Trace}
	}
}

func (t *task) fail(c tuner.Candidate, class, message string) {
	t.trials++
	t.failures = append(t.failures, fmt.Sprintf("%s: %s: %s", c.Origin, class, message))
	t.search.Observe(tuner.Trial{Digest: c.Digest, Origin: c.Origin, Failed: true})
}
