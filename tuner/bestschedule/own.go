package bestschedule

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// forbids reports whether a schedule uses a hand-written kernel that is not allowed.
func (c *chooser) forbids(s *schedule.Schedule) bool {
	return s.Own != nil && (c.Own == nil || !c.Own(s.Own.Kernel))
}

// maxConfirmed is the number of schedules of a task measured in place of a record with a forbidden kernel.
const maxConfirmed = 3

// scheduled returns the fastest measured schedule of a task whose best record has a forbidden kernel, or nil
// if none is usable. Users who do not allow such a kernel thus lose nothing else.
func (c *chooser) scheduled(ctx context.Context, task program.Task, r *tilthv1.Record, numerics schedule.Numerics) (*alternative, error) {
	best, err := schedule.Replay(task.Workload, r.GetMeasurement().GetCandidate().GetTrace())
	if err != nil || !c.forbids(best) || c.Learn == nil {
		return nil, nil //nolint:nilerr // the caller has already reported it
	}
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	s, err := registry.Space(task.Workload, c.target, numerics)
	if err != nil {
		return nil, err
	}
	asked := 0
	for _, trial := range c.history.Trials(task.Workload.Digest()) {
		p, ok := s.Parse(trial.Origin)
		if !ok {
			continue
		}
		made, err := s.Apply(p)
		if err != nil || schedule.Digest(made.Trace()) != trial.Digest {
			continue // the rules have changed since
		}
		// The trial's record is not available, so the schedule is measured wherever it came from.
		seconds, refused, err := c.confirmed(ctx, task, &tilthv1.Record{WorkloadDigest: task.Workload.Digest(), Target: r.GetTarget()}, made, numerics)
		if err != nil {
			return nil, err
		}
		if asked++; refused != "" && asked < maxConfirmed {
			continue
		}
		if refused != "" {
			return nil, nil
		}
		latency := cmp.Or(seconds, trial.LatencySeconds)
		a := newAlternative(task, made, aot.Choice{Origin: FromRecord, LatencySeconds: latency}, latency)
		return &a, nil
	}
	return nil, nil
}
