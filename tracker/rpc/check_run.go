package rpc

import (
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Bounds of a run.
const (
	maxRepeats    = 10_000
	maxExecutions = 1_000_000
	longestRun    = time.Hour
)

// checkRun checks a job that runs packages.
func checkRun(spec *tilthv1.JobSpec) error {
	run := spec.GetRun()
	if err := checkName("spec.name", spec.GetName()); err != nil {
		return err
	}
	if err := checkName("spec.target.device_class", spec.GetTarget().GetDeviceClass()); err != nil {
		return err
	}
	if len(spec.GetTasks()) > 0 || spec.GetTuner() != "" {
		return invalid("spec.tasks", "are there, or a tuner is, in a job that runs packages")
	}
	if len(spec.GetKernels()) > 0 {
		return invalid("spec.kernels", "are there, in a job that runs packages")
	}
	if p := spec.GetPriority(); p > wire.MaxPriority {
		return invalid("spec.priority", "is %d, not 1 to %d", p, wire.MaxPriority)
	}
	if spec.GetModel() != nil {
		return invalid("spec.model", "is there, in a job that runs packages")
	}
	if run.GetPackageOf() != "" {
		return invalid("spec.run.package_of", "is set by the tracker: call MakePackage")
	}
	if len(run.GetPackages()) == 0 {
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
