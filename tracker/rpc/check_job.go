package rpc

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func checkJob(spec *tilthv1.JobSpec) error {
	if owner := spec.GetOwner(); owner != "" {
		if err := checkKeyName("spec.owner", owner); err != nil {
			return err
		}
	}
	if spec.GetRun() != nil {
		return checkRun(spec)
	}
	err := checkKeyName("spec.name", spec.GetName())
	if spec.GetModel() == nil {
		err = cmp.Or(err, checkTargetSpec("spec.", spec.GetTarget()))
	}
	err = cmp.Or(err, checkKeyName("spec.target.device_class", spec.GetTarget().GetDeviceClass()), checkKeyName("spec.tuner", spec.GetTuner()))
	if err != nil {
		return err
	}
	switch time := spec.GetBudget().GetTime(); {
	case !records.ValidNumerics(spec.GetNumerics()):
		return invalid("spec.numerics", "is %q, not strict, default or fast", spec.GetNumerics())
	case spec.GetPriority() > wire.MaxPriority:
		return invalid("spec.priority", "is %d, not 1 to %d", spec.GetPriority(), wire.MaxPriority)
	case spec.GetBudget().GetTrials() == 0 && time == nil:
		return invalid("spec.budget", "has neither trials nor time")
	case time != nil && (!time.IsValid() || time.AsDuration() <= 0): // the job would end as done before it began
		return invalid("spec.budget.time", "is %v, not a time of more than 0", time.AsDuration())
	case spec.GetModel() != nil:
		return checkModel(spec)
	}
	return checkTasks("spec.", spec.GetTasks())
}

// checkTargetSpec checks a target. prefix is the path of the message that contains it.
func checkTargetSpec(prefix string, target *tilthv1.TargetSpec) error {
	return cmp.Or(checkKeyName(prefix+"target.fingerprint", target.GetFingerprint()), checkKeyName(prefix+"target.toolchain", target.GetToolchain()))
}

// checkTasks checks tasks. prefix is the path of the message that contains them.
func checkTasks(prefix string, tasks []*tilthv1.TaskSpec) error {
	if len(tasks) == 0 {
		return invalid(prefix+"tasks", "is empty")
	}
	for i, task := range tasks {
		if err := checkTask(fmt.Sprintf("%stasks[%d].", prefix, i), task); err != nil {
			return err
		}
	}
	return nil
}

func checkTask(field string, task *tilthv1.TaskSpec) error {
	switch {
	case task.GetDefaultDigest() != "" && !records.ValidDigest(task.GetDefaultDigest()):
		return invalid(field+"default_digest", "%q is not a sha256", task.GetDefaultDigest())
	case len(task.GetWorkload()) == 0:
		return invalid(field+"workload", "is empty")
	case !records.IsDigest(task.GetWorkloadDigest(), task.GetWorkload()):
		return invalid(field+"workload_digest", "%q is not the workload's", task.GetWorkloadDigest())
	case !(task.GetWeight() > 0) || math.IsInf(task.GetWeight(), 0):
		return invalid(field+"weight", "is %v", task.GetWeight())
	case !(task.GetFlop() >= 0) || math.IsInf(task.GetFlop(), 0):
		return invalid(field+"flop", "is %v", task.GetFlop())
	case !records.ValidSeconds(task.GetPeakSeconds()):
		return invalid(field+"peak_seconds", "is %v", task.GetPeakSeconds())
	case !records.ValidSeconds(task.GetByteSeconds()):
		return invalid(field+"byte_seconds", "is %v", task.GetByteSeconds())
	case !records.ValidSeconds(task.GetLeastSeconds()):
		return invalid(field+"least_seconds", "is %v", task.GetLeastSeconds())
	}
	return nil
}

// checkName refuses a name that is empty or too long for a key of the store.
func checkName(field, name string) error {
	if name == "" {
		return invalid(field, "is empty")
	}
	if len(name) > records.MaxNameBytes {
		return invalid(field, "has %d bytes, more than the limit of %d", len(name), records.MaxNameBytes)
	}
	return nil
}

// checkKeyName refuses a name with a zero byte, which separates the parts of keys.
func checkKeyName(field, name string) error {
	if err := checkName(field, name); err != nil {
		return err
	}
	if strings.IndexByte(name, 0) >= 0 {
		return invalid(field, "holds a zero byte")
	}
	return nil
}

// checkModel checks the models of a job, and that the job sets nothing that the models determine. Whether a model
// matches the request is up to the tuner that reads it.
func checkModel(spec *tilthv1.JobSpec) error {
	model, target := spec.GetModel(), spec.GetTarget()
	if len(spec.GetTasks()) > 0 {
		return invalid("spec.tasks", "are there, in a job whose tasks are those of a model")
	}
	if target.GetFingerprint() != "" || len(target.GetDescriptor_()) > 0 || len(target.GetMachine()) > 0 {
		return invalid("spec.target", "has more than a device class and a toolchain, in a job with a model: leave out the rest")
	}
	if tc := target.GetToolchain(); tc != "" {
		if err := checkKeyName("spec.target.toolchain", tc); err != nil {
			return err
		}
	}
	if err := checkModelFile("spec.model", model); err != nil {
		return err
	}
	if bits := model.GetWeightBits(); bits != 0 && bits != 4 && bits != 8 {
		return invalid("spec.model.weight_bits", "is %d, not 4 or 8, or 0 for floats", bits)
	}
	for i, other := range model.GetOthers() {
		if err := checkModelFile(fmt.Sprintf("spec.model.others[%d]", i), other); err != nil {
			return err
		}
	}
	return cmp.Or(checkTaskWeights(model), checkSeedFiles(model.GetSeeds()))
}

// modelFile is common to the main model of a job and the others.
type modelFile interface {
	GetFile() *tilthv1.ArtifactRef
	GetShapes() map[string]*tilthv1.Extents
	GetOpen() map[string]*tilthv1.ExtentBounds
	GetWeight() float64
}

func checkModelFile(field string, model modelFile) error {
	if err := checkArtifact(field+".file", model.GetFile()); err != nil {
		return err
	}
	if w := model.GetWeight(); w != 0 && !isWeight(w) {
		return invalid(field+".weight", "is %v, not a number above 0, or 0 for 1", w)
	}
	open := model.GetOpen()
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if _, fixed := model.GetShapes()[name]; fixed {
			return invalid(field+".open", "has %q, as do the shapes: an extent is open or fixed", name)
		}
		if err := checkFrequencies(fmt.Sprintf("%s.open[%q]", field, name), open[name]); err != nil {
			return err
		}
	}
	return nil
}

// maxFrequency bounds the frequency of an extent, so that sums stay finite.
const maxFrequency = math.MaxInt64

func checkFrequencies(field string, b *tilthv1.ExtentBounds) error {
	if len(b.GetCaps()) > 0 && len(b.GetFrequencies()) > 0 {
		return invalid(field, "has caps and frequencies: the latter are for the compiler to choose caps by")
	}
	for _, n := range slices.Sorted(maps.Keys(b.GetFrequencies())) {
		if f := b.GetFrequencies()[n]; n < 1 || !isWeight(f) || f > maxFrequency {
			return invalid(field+".frequencies", "has %v for an extent of %d: want a positive count, and an extent of at least 1", f, n)
		}
	}
	return nil
}

// isWeight reports whether a number is finite and above 0.
func isWeight(w float64) bool { return w > 0 && !math.IsInf(w, 1) }

func checkTaskWeights(model *tilthv1.ModelSpec) error {
	if len(model.GetTaskWeights()) == 0 {
		return nil
	}
	if model.GetTasks() != "" {
		return invalid("spec.model.task_weights", "are there, and tasks: both say which tasks to tune")
	}
	weighs := func(o *tilthv1.OtherModel) bool { return o.GetWeight() != 0 }
	if model.GetWeight() != 0 || slices.ContainsFunc(model.GetOthers(), weighs) {
		return invalid("spec.model.task_weights", "are there, and weights of models, whose place they take")
	}
	for i, w := range model.GetTaskWeights() {
		switch field := fmt.Sprintf("spec.model.task_weights[%d].", i); {
		case !isWeight(w.GetWeight()):
			return invalid(field+"weight", "is %v, not a number above 0", w.GetWeight())
		case w.GetTasks() == "":
			return invalid(field+"tasks", "is empty")
		}
	}
	return nil
}

func checkSeedFiles(seeds []*tilthv1.SeedFile) error {
	for i, s := range seeds {
		field := fmt.Sprintf("spec.model.seeds[%d].", i)
		if err := checkArtifact(field+"file", s.GetFile()); err != nil {
			return err
		}
		if _, known := tilthv1.SeedFormat_name[int32(s.GetFormat())]; !known || s.GetFormat() == tilthv1.SeedFormat_SEED_FORMAT_UNSPECIFIED {
			return invalid(field+"format", "is %v, not one of AutoTVM, Ansor or Tilth", s.GetFormat())
		}
	}
	return nil
}

// Bounds of a run.
const (
	maxRepeats    = 10_000
	maxExecutions = 1_000_000
	longestRun    = time.Hour
)

// checkRun checks a job that runs packages.
func checkRun(spec *tilthv1.JobSpec) error {
	run := spec.GetRun()
	err := cmp.Or(checkName("spec.name", spec.GetName()), checkName("spec.target.device_class", spec.GetTarget().GetDeviceClass()))
	if err != nil {
		return err
	}
	switch {
	case len(spec.GetTasks()) > 0 || spec.GetTuner() != "":
		return invalid("spec.tasks", "are there, or a tuner is, in a job that runs packages")
	case len(spec.GetKernels()) > 0:
		return invalid("spec.kernels", "are there, in a job that runs packages")
	case spec.GetPriority() > wire.MaxPriority:
		return invalid("spec.priority", "is %d, not 1 to %d", spec.GetPriority(), wire.MaxPriority)
	case spec.GetModel() != nil:
		return invalid("spec.model", "is there, in a job that runs packages")
	case run.GetPackageOf() != "":
		return invalid("spec.run.package_of", "is set by the tracker: call MakePackage")
	case len(run.GetPackages()) == 0:
		return invalid("spec.run.packages", "is empty")
	}
	for i, p := range run.GetPackages() {
		if err := checkArtifact(fmt.Sprintf("spec.run.packages[%d].artifact", i), p.GetArtifact()); err != nil {
			return err
		}
	}
	if run.GetInputs() != nil {
		if err := checkArtifact("spec.run.inputs", run.GetInputs()); err != nil {
			return err
		}
	}
	return checkWanted(run)
}

// checkWanted checks the requested outputs and the bounds of a run.
func checkWanted(run *tilthv1.RunSpec) error {
	limit := run.GetLimit()
	switch {
	case len(run.GetPackages()) > 1 && (run.GetInputs() != nil || run.GetOutputs() || run.GetProfile() > 0):
		return invalid("spec.run", "wants inputs, outputs or a profile of several packages: one at a time has these")
	case run.GetRepeat() > maxRepeats:
		return invalid("spec.run.repeat", "is %d, more than the limit of %d", run.GetRepeat(), maxRepeats)
	case run.GetNumber() > maxExecutions:
		return invalid("spec.run.number", "is %d, more than the limit of %d", run.GetNumber(), maxExecutions)
	case run.GetRepeat() > 0 && run.GetNumber() == 0:
		return invalid("spec.run.number", "is 0: a sample has an execution at least")
	case run.GetProfile() > maxRepeats:
		return invalid("spec.run.profile", "is %d, more than the limit of %d", run.GetProfile(), maxRepeats)
	case limit != nil && (limit.AsDuration() <= 0 || limit.AsDuration() > longestRun):
		return invalid("spec.run.limit", "is %v, not more than 0 and at most %v", limit.AsDuration(), longestRun)
	}
	return nil
}

func checkArtifact(field string, ref *tilthv1.ArtifactRef) error {
	if !records.ValidDigest(ref.GetDigest()) {
		return invalid(field+".digest", "%q is not a sha256", ref.GetDigest())
	}
	return nil
}
