package operators

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/runner"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// task is a workload with the kernel of its default schedule.
type task struct {
	workload
	point string // of the schedule
	built *builder.Built
	// seconds is the kernel's latency, or 0 if it failed.
	seconds  float64
	failures []string
}

// build compiles the default schedule of a workload.
func (b *suite) build(ctx context.Context, w workload) (*task, error) {
	s, err := registry.Space(w.Workload, b.target, w.numerics)
	if err != nil {
		return nil, err
	}
	applied, err := s.Apply(s.Default())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.title(), err)
	}
	dir := filepath.Join(b.scratch, fmt.Sprintf("%d-%v-%.16s", b.target.Threads(), w.numerics, w.Digest()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	trace := applied.Trace()
	t := &task{workload: w, point: s.Format(s.Default())}
	if t.built, err = b.compiler.Build(ctx, dir, builder.Batch{
		Workload: w.Workload, Target: b.target, Candidates: []builder.Candidate{{Digest: schedule.Digest(trace), Trace: trace}},
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", w.title(), err)
	}
	for _, o := range t.built.Outcomes {
		t.note(o.Error, o.Message)
	}
	return t, nil
}

// note records a failure, if it is one.
func (t *task) note(class tilthv1.ErrorClass, message string) {
	if class != tilthv1.ErrorClass_ERROR_CLASS_NONE {
		t.failures = append(t.failures, fmt.Sprintf("%s: %s: %s", t.point, wire.ErrorClass(class), message))
	}
}

// time times the kernel of a task.
func (b *suite) time(ctx context.Context, t *task) error {
	if len(t.built.Objects) == 0 { // it failed to build
		return nil
	}
	plan := runner.Plan{
		Device: b.backend.Device(b.target), Harness: t.built.Harness, Reference: t.built.Reference, Candidates: t.built.Objects,
		Threads: b.target.Threads(), Seed: 1, Limits: b.limits, ReferenceCache: filepath.Join(b.options.dir, "results-"+filepath.Base(t.built.Reference)),
	}
	t.seconds = 0
	if err := runner.Measure(ctx, plan, func(o runner.Outcome) {
		if t.note(o.Error, o.Message); o.Error == tilthv1.ErrorClass_ERROR_CLASS_NONE {
			t.seconds = stats.Of(o.Samples).Median
		}
	}); err != nil {
		return fmt.Errorf("%s: %w", t.title(), err)
	}
	return nil
}
