// Package job turns a compiled model into what a tracker is asked to tune.
package job

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/trials"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Task is a task of a model under a name that no other task of it has.
type Task struct {
	// Index is the task's place among those of the model.
	Index int
	Name  string
	graph.Task
}

// Tasks lists a program's tasks.
func Tasks(p *graph.Program) []Task {
	taken := map[string]int{}
	var tasks []Task
	for i, t := range p.Tasks {
		tasks = append(tasks, Task{Index: i, Name: trials.UniqueName(taken, t.Name), Task: t})
	}
	return tasks
}

// Options say how to tune.
type Options struct {
	Name, Owner string
	// Target has its toolchain.
	Target *target.Target
	// Trials and Time bound the job; zero values are no limit.
	Trials int
	Time   time.Duration
	// Tuner is the search algorithm.
	Tuner string
	Seed  uint64
	// Numerics bounds the algorithms that are tried.
	Numerics schedule.Numerics
}

// Spec is the job that tunes tasks.
func Spec(tasks []Task, o Options) *tilthv1.JobSpec {
	spec := &tilthv1.JobSpec{
		Name: o.Name, Owner: o.Owner, Tuner: o.Tuner, Seed: o.Seed, Numerics: o.Numerics.String(),
		Target: &tilthv1.TargetSpec{
			Fingerprint: o.Target.Fingerprint(), Descriptor_: o.Target.Encode(),
			Toolchain: o.Target.Toolchain, DeviceClass: o.Target.DeviceClass(),
		},
		Budget: &tilthv1.Budget{Trials: uint32(o.Trials)},
	}
	if o.Time > 0 {
		spec.Budget.Time = durationpb.New(o.Time)
	}
	for _, t := range tasks {
		spec.Tasks = append(spec.Tasks, &tilthv1.TaskSpec{
			Name: t.Name, WorkloadDigest: t.Workload.Digest(), Workload: []byte(t.Workload.Text()),
			Weight: float64(t.Count), Flop: t.Flop,
		})
	}
	return spec
}
