package rpc

import (
	"fmt"
	"maps"
	"math"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
	if err := checkTaskWeights(model); err != nil {
		return err
	}
	return checkSeedFiles(model.GetSeeds())
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
