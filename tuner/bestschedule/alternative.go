package bestschedule

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// alternative is one way to compute a task.
type alternative struct {
	choice   aot.Choice
	schedule *schedule.Schedule
	// seconds is the measured or estimated time of one call.
	seconds float64
	// added is what all calls add to the weights.
	added size
}

func newAlternative(task program.Task, s *schedule.Schedule, c aot.Choice, seconds float64) alternative {
	c.Trace = s.Trace()
	sums, all := s.AddedBytes()
	count := int64(task.Count)
	return alternative{choice: c, schedule: s, seconds: seconds, added: size{sums: max(0, sums*count), all: max(0, all*count)}}
}

// recorded returns the alternative of a task's record, or nil if the record does not replay, is not
// confirmed, or exceeds the numerics level.
func (c *chooser) recorded(ctx context.Context, task program.Task, r *tilthv1.Record, numerics schedule.Numerics) (*alternative, error) {
	m := r.GetMeasurement()
	s, err := schedule.Replay(task.Workload, m.GetCandidate().GetTrace())
	if err == nil && s.Numerics() > numerics {
		err = fmt.Errorf("its schedule needs numerics %v, not %v", s.Numerics(), numerics)
	}
	if err == nil && c.forbids(s) {
		c.log.Warn("ignoring a record with a hand-written kernel: --kernels allows the kernel of a folder, --own-kernels all",
			"task", task.Name, "kernel", s.Own.Kernel.Label())
		return nil, nil
	}
	if err != nil {
		c.log.Warn("record does not replay, doing without", "task", task.Name, "error", err)
		return nil, nil
	}
	seconds, refused, err := c.confirmed(ctx, task, r, s, numerics)
	if err != nil {
		return nil, err
	}
	if refused != "" {
		c.log.Warn("record is not confirmed, doing without", "task", task.Name, "reason", refused)
		return nil, nil
	}
	choice := aot.Choice{Origin: FromRecord, LatencySeconds: cmp.Or(seconds, m.GetLatencySeconds()), RelativeError: m.GetRelativeError(), Record: origin(m)}
	a := newAlternative(task, s, choice, choice.LatencySeconds)
	return &a, nil
}

// origin identifies the record of a measurement.
func origin(m *tilthv1.Measurement) *aot.Record {
	key := records.KeyOf(m)
	return &aot.Record{
		Key: hex.EncodeToString(key[:]), Candidate: m.GetCandidate().GetDigest(), MeasuredAt: m.GetAt().AsTime().Format(time.RFC3339Nano),
	}
}

// confirmed confirms a record's schedule if confirmation is required.
func (c *chooser) confirmed(ctx context.Context, task program.Task, r *tilthv1.Record, s *schedule.Schedule, numerics schedule.Numerics) (seconds float64, refused string, err error) {
	if c.Confirm == nil {
		return 0, "", nil
	}
	space, err := registry.Space(task.Workload, c.target, numerics)
	if err != nil {
		return 0, "", err
	}
	standard, err := space.Apply(space.Default())
	if err != nil {
		return 0, "", fmt.Errorf("default schedule of %s: %w", task.Name, err)
	}
	return c.Confirm(ctx, r, s, standard)
}

// untuned returns the default schedule of each algorithm that the numerics level allows, lowest analytic cost
// first. The cost serves as a time, so that tasks without records can be compared with others.
func untuned(task program.Task, t *target.Target, numerics schedule.Numerics) ([]alternative, error) {
	b, err := registry.Of(t)
	if err != nil {
		return nil, err
	}
	s := b.Space(task.Workload, t, numerics)
	points := s.Defaults()
	s.Sort(points)
	var list []alternative
	for _, p := range points {
		applied, err := s.Apply(p)
		if err != nil {
			return nil, fmt.Errorf("default schedule of %s: %w", task.Name, err)
		}
		list = append(list, newAlternative(task, applied, aot.Choice{Origin: FromDefault}, s.Cost(p)/b.Clock(t)))
	}
	return list, nil
}

// lighter returns the alternatives of a task with a record, the record first: the best record of direct sums,
// if any, and the default schedules of other algorithms. Their times are scaled like that of the record's
// algorithm, and none is assumed faster than the record, because the search considered them, too.
func (c *chooser) lighter(ctx context.Context, task program.Task, record alternative, numerics schedule.Numerics) ([]alternative, error) {
	list := []alternative{record}
	known := map[string]bool{algorithms(record.schedule): true}
	best, err := c.best(ctx, []program.Task{task}, schedule.Strict)
	if err != nil {
		return nil, err
	}
	if r := best[task.Workload.Digest()]; r != nil {
		a, err := c.recorded(ctx, task, r, schedule.Strict)
		if err != nil {
			return nil, err
		}
		if a != nil && !known[algorithms(a.schedule)] {
			list = append(list, *a)
			known[algorithms(a.schedule)] = true
		}
	}
	defaults, err := c.unmeasured(ctx, task, numerics)
	if err != nil {
		return nil, err
	}
	scale := 1.0
	for _, d := range defaults {
		if algorithms(d.schedule) == algorithms(record.schedule) {
			scale = record.seconds / d.seconds
		}
	}
	for _, d := range defaults {
		if !known[algorithms(d.schedule)] {
			d.seconds = max(d.seconds*scale, record.seconds)
			list = append(list, d)
		}
	}
	return list, nil
}

// algorithms identifies the algorithms of a schedule.
func algorithms(s *schedule.Schedule) string { return fmt.Sprint(s.Algorithms()) }
