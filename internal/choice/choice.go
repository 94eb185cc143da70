// Package choice picks the schedules that a model is compiled with.
package choice

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/job"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Where a schedule comes from, as the package's manifest says it.
const (
	FromRecord  = "tuned"
	FromDefault = "default"
)

// Lookup returns the best records of workloads on a target that a level of numerics allows; workloads without one are left out.
type Lookup func(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error)

// Choose returns a schedule for each task of a program: that of the best record, or, where there is none or it does not
// replay or is not allowed by the level of numerics, the default one. A nil lookup means default schedules for all.
func Choose(ctx context.Context, p *graph.Program, t *target.Target, numerics schedule.Numerics, lookup Lookup, log *slog.Logger) ([]aot.Choice, error) {
	best := map[string]*tilthv1.Record{}
	if lookup != nil {
		var digests []string
		for _, task := range p.Tasks {
			digests = append(digests, task.Workload.Digest())
		}
		found, err := lookup(ctx, t.Fingerprint(), numerics, digests...)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			best[r.GetWorkloadDigest()] = r
		}
	}
	choices := make([]aot.Choice, len(p.Tasks))
	for i, task := range p.Tasks {
		if r := best[task.Workload.Digest()]; r != nil {
			m := r.GetMeasurement()
			choices[i] = aot.Choice{Trace: m.GetCandidate().GetTrace(), Origin: FromRecord, LatencySeconds: m.GetLatencySeconds()}
			s, err := schedule.Replay(task.Workload, choices[i].Trace)
			if err == nil && s.Numerics() > numerics {
				err = fmt.Errorf("its schedule needs numerics %v, not %v", s.Numerics(), numerics)
			}
			if err == nil {
				choices[i].RelativeError = m.GetRelativeError()
				continue
			}
			log.Warn("record does not replay, using the default schedule", "task", task.Name, "error", err)
		}
		s, err := job.Default(task.Workload, t, numerics)
		if err != nil {
			return nil, fmt.Errorf("default schedule of %s: %w", task.Name, err)
		}
		choices[i] = aot.Choice{Trace: s.Trace(), Origin: FromDefault}
	}
	return choices, nil
}

// Tuned counts the choices that come from records.
func Tuned(choices []aot.Choice) (n int) {
	for _, c := range choices {
		if c.Origin == FromRecord {
			n++
		}
	}
	return n
}
