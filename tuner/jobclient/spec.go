package jobclient

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Options configures a job and its search.
type Options struct {
	Name, Owner string
	// Target includes its toolchain.
	Target *target.Target
	// Trials and Time bound the job; zero values mean no limit.
	Trials int
	Time   time.Duration
	// Tuner is the search algorithm.
	Tuner string
	Seed  uint64
	// Numerics bounds the algorithms to try.
	Numerics schedule.Numerics
	// EarlyStop is the number of consecutive trials without progress that ends the job; 0 means no limit.
	EarlyStop int
	// NoTransfer ignores measurements of other jobs.
	NoTransfer bool
	// Priority is the job's share among its owner's jobs, 1 to 100; 0 means the tracker's default.
	Priority int
	// Private restricts the job and its records to their owner.
	Private bool
	// Kernels lists the owner's hand-written kernels, which the search tries, too.
	Kernels []*userkernel.Kernel
	// Seeds holds points that searches try first; nil means none. NoTransfer ignores them.
	Seeds *importedseeds.File
	// Machine holds the target's peak rates, encoded by roofline.Rates.Encode; nil if unknown.
	Machine []byte
}

// seedsOf returns the seeds of a task.
func (o *Options) seedsOf(t Task) (list [][]byte) {
	if o.NoTransfer {
		return nil
	}
	for _, p := range o.Seeds.Points(t.Workload, o.Target, o.Numerics) {
		list = append(list, []byte(p))
	}
	return list
}

// NewSpec returns the specification of a job that tunes tasks.
func NewSpec(tasks []Task, o Options) *tilthv1.JobSpec {
	spec := &tilthv1.JobSpec{
		Name: o.Name, Owner: o.Owner, Tuner: o.Tuner, Seed: o.Seed, Numerics: o.Numerics.String(), NoTransfer: o.NoTransfer,
		Priority: uint32(o.Priority), Private: o.Private,
		Target: &tilthv1.TargetSpec{
			Fingerprint: o.Target.Fingerprint(), Descriptor_: o.Target.Encode(),
			Toolchain: o.Target.Toolchain, DeviceClass: o.Target.DeviceClass(), Machine: o.Machine,
		},
		Budget: &tilthv1.Budget{Trials: uint32(o.Trials), EarlyStop: uint32(o.EarlyStop)},
	}
	for _, k := range o.Kernels {
		spec.Kernels = append(spec.Kernels, k.Text())
	}
	if o.Time > 0 {
		spec.Budget.Time = durationpb.New(o.Time)
	}
	for _, t := range tasks {
		spec.Tasks = append(spec.Tasks, &tilthv1.TaskSpec{
			Name: t.Name, WorkloadDigest: t.Workload.Digest(), Workload: []byte(t.Workload.Text()),
			Weight: t.Weight, Flop: t.Flop,
			DefaultDigest: defaultDigest(t.Workload, o.Target, o.Numerics),
			Seeds:         o.seedsOf(t),
		})
	}
	for i, r := range References(spec) {
		spec.Tasks[i].PeakSeconds, spec.Tasks[i].ByteSeconds = r.PeakSeconds, r.ByteSeconds
	}
	if rates, err := roofline.Decode(o.Machine); err == nil {
		for i, t := range tasks {
			spec.Tasks[i].LeastSeconds = rates.Least(t.Workload, t.Flop, o.Target.RunsOnCPU())
		}
	}
	return spec
}

// Task is a task of one or several models, with a unique name.
type Task struct {
	// Index is the task's index among those of the models.
	Index int
	Name  string
	// Weight is the sum over the models of the number of executions times the model's weight.
	Weight float64
	program.Task
}

// Model is the tasks of a model and the model's weight.
type Model struct {
	Tasks  []program.Task
	Weight float64
}

// Join lists the tasks of several models that are tuned, in order. It merges tasks with equal workloads and adds their
// weights.
func Join(models ...Model) []Task {
	taken, at := map[string]int{}, map[string]int{}
	var tasks []Task
	for _, m := range models {
		for _, t := range m.Tasks {
			if t.Untuned {
				continue
			}
			digest := t.Workload.Digest()
			weight := m.Weight * t.Runs()
			if i, known := at[digest]; known {
				tasks[i].Weight += weight
				tasks[i].Count += t.Count
				continue
			}
			at[digest] = len(tasks)
			tasks = append(tasks, Task{Index: len(tasks), Name: progress.UniqueName(taken, t.Name), Weight: weight, Task: t})
		}
	}
	return tasks
}

// defaultDigest returns the digest of the default schedule's trace, or "".
func defaultDigest(w *expr.Workload, t *target.Target, numerics schedule.Numerics) string {
	s, err := registry.Default(w, t, numerics)
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
