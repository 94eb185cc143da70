package job

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Default is the schedule of a workload, with the algorithms that numerics allow, for when nothing was ever measured.
func Default(w *expr.Workload, t *target.Target, numerics schedule.Numerics) (*schedule.Schedule, error) {
	s := space.New(w, t, numerics)
	return s.Apply(s.Default())
}

// Untuned returns the digests of the default schedules' traces of a job's tasks; empty where this version cannot tell.
func Untuned(spec *tilthv1.JobSpec) []string {
	digests := make([]string, len(spec.GetTasks()))
	machine, err := target.Decode(spec.GetTarget().GetDescriptor_())
	if err != nil {
		return digests
	}
	numerics, err := schedule.ParseNumerics(spec.GetNumerics())
	if err != nil {
		return digests
	}
	for i, task := range spec.GetTasks() {
		w, err := expr.Parse(string(task.GetWorkload()))
		if err != nil {
			continue
		}
		if s, err := Default(w, machine, numerics); err == nil {
			digests[i] = schedule.Digest(s.Trace())
		}
	}
	return digests
}
