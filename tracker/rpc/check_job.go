package rpc

import (
	"fmt"
	"math"
	"strings"

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
	target := spec.GetTarget()
	if err := checkKeyName("spec.name", spec.GetName()); err != nil {
		return err
	}
	if spec.GetModel() == nil {
		if err := checkTargetSpec("spec.", target); err != nil {
			return err
		}
	}
	for _, f := range []struct{ field, value string }{
		{"spec.target.device_class", target.GetDeviceClass()},
		{"spec.tuner", spec.GetTuner()},
	} {
		if err := checkKeyName(f.field, f.value); err != nil {
			return err
		}
	}
	if n := spec.GetNumerics(); !records.ValidNumerics(n) {
		return invalid("spec.numerics", "is %q, not strict, default or fast", n)
	}
	if p := spec.GetPriority(); p > wire.MaxPriority {
		return invalid("spec.priority", "is %d, not 1 to %d", p, wire.MaxPriority)
	}
	time := spec.GetBudget().GetTime()
	if spec.GetBudget().GetTrials() == 0 && time == nil {
		return invalid("spec.budget", "has neither trials nor time")
	}
	// Otherwise the job would end as done before it began.
	if time != nil && (!time.IsValid() || time.AsDuration() <= 0) {
		return invalid("spec.budget.time", "is %v, not a time of more than 0", time.AsDuration())
	}
	if spec.GetModel() != nil {
		return checkModel(spec)
	}
	return checkTasks("spec.", spec.GetTasks())
}

// checkTargetSpec checks a target. prefix is the path of the message that contains it.
func checkTargetSpec(prefix string, target *tilthv1.TargetSpec) error {
	for _, f := range []struct{ field, value string }{
		{"target.fingerprint", target.GetFingerprint()},
		{"target.toolchain", target.GetToolchain()},
	} {
		if err := checkKeyName(prefix+f.field, f.value); err != nil {
			return err
		}
	}
	return nil
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
