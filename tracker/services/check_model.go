package services

import (
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// checkModel checks the model of a job, and that the job has nothing that follows from the model. Whether the model
// fits what is asked of it, its reader says.
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
	if err := checkArtifact("spec.model.file", model.GetFile()); err != nil {
		return err
	}
	if bits := model.GetWeightBits(); bits != 0 && bits != 4 && bits != 8 {
		return invalid("spec.model.weight_bits", "is %d, not 4 or 8, or 0 for floats", bits)
	}
	for _, name := range slices.Sorted(maps.Keys(model.GetOpen())) {
		if _, fixed := model.GetShapes()[name]; fixed {
			return invalid("spec.model.open", "has %q, as do the shapes: an extent is open or fixed", name)
		}
	}
	return nil
}
