package jobclient

import (
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Default returns the schedule of a workload that is used without measurements, restricted to the algorithms
// that numerics allow.
func Default(w *expr.Workload, t *target.Target, numerics schedule.Numerics) (*schedule.Schedule, error) {
	s, err := registry.Space(w, t, numerics)
	if err != nil {
		return nil, err
	}
	return s.Apply(s.Default())
}

// defaultDigest returns the digest of the default schedule's trace, or "".
func defaultDigest(w *expr.Workload, t *target.Target, numerics schedule.Numerics) string {
	s, err := Default(w, t, numerics)
	if err != nil {
		return ""
	}
	return schedule.Digest(s.Trace())
}

// References returns the reference values for the measurements of a job's tasks. Unknown values are omitted.
func References(spec *tilthv1.JobSpec) []progress.Reference {
	references := make([]progress.Reference, len(spec.GetTasks()))
	rates, err := roofline.Decode(spec.GetTarget().GetMachine())
	known := err == nil
	for i, task := range spec.GetTasks() {
		references[i].DefaultDigest = task.GetDefaultDigest()
		if !known {
			continue
		}
		if w, err := expr.Parse(string(task.GetWorkload())); err == nil {
			references[i].PeakSeconds, references[i].ByteSeconds = rates.Limits(w, task.GetFlop())
		}
	}
	return references
}
