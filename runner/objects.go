package runner

import (
	"context"
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// objects measures the kernels in a plan's objects and skips objects that turn out to be broken.
type objects struct {
	plan    Plan
	results *results
	report  func(Outcome)
	// reported lists the kernels whose outcomes were reported.
	reported []string
	// crashed is the failure of the last object that crashed or hung while being loaded, or nil.
	crashed *loadError
	// unfit is why the last object could not be loaded without misbehaving, or nil.
	unfit *loadError
}

// loadError means that an object cannot be loaded.
type loadError struct {
	// module is the index of the object.
	module int
	class  tilthv1.ErrorClass
	// message describes its behaviour or why it cannot be loaded.
	message string
}

func (e *loadError) Error() string { return "the object cannot be loaded: " + e.message }

func (o *objects) measure(ctx context.Context) error {
	for {
		m := &measurement{plan: o.plan, results: o.results, current: -1, loading: -1, report: o.hand}
		err := m.run(ctx)
		var broken *loadError
		var large *tooLargeError
		switch {
		case err == nil:
			return o.rest()
		case errors.As(err, &large) && len(o.plan.Kernels) > 0:
			o.failRest(Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH, Message: large.message})
			return nil
		case !errors.As(err, &broken):
			return err
		case len(o.plan.Kernels) == 0 && !m.loaded: // the affected kernels are unknown
			return &infraError{broken.Error()}
		}
		if err := o.without(ctx, m, broken); err != nil {
			return err
		}
		if len(o.plan.Candidates) == 0 || len(o.plan.Kernels) == 0 {
			return o.rest()
		}
	}
}

func (o *objects) hand(outcome Outcome) {
	o.reported = append(o.reported, outcome.Kernel)
	o.report(outcome)
}

// without continues without a broken object and without the measured kernels.
func (o *objects) without(ctx context.Context, m *measurement, broken *loadError) error {
	if broken.class == tilthv1.ErrorClass_ERROR_CLASS_NONE && callsLibraries(o.plan.Candidates[broken.module]) {
		broken.class, broken.message = tilthv1.ErrorClass_ERROR_CLASS_CRASH, broken.Error()+librariesRemedy
	}
	if broken.class == tilthv1.ErrorClass_ERROR_CLASS_NONE {
		o.unfit = broken
	} else {
		o.crashed = broken
	}
	if err := m.settled(ctx); err != nil {
		return err
	}
	if m.loaded {
		o.plan.Kernels = m.kernels
	}
	o.plan.Kernels = slices.DeleteFunc(slices.Clone(o.plan.Kernels), func(id string) bool { return slices.Contains(o.reported, id) })
	o.plan.Candidates = slices.Delete(slices.Clone(o.plan.Candidates), broken.module, broken.module+1)
	return nil
}

// rest reports outcomes of kernels in objects that could not be loaded.
func (o *objects) rest() error {
	if o.unfit != nil { // it is unknown which broken object contains a kernel, so the batch fails as a whole
		return &agent.FarmError{Cause: o.unfit}
	}
	if o.crashed != nil {
		o.failRest(Outcome{Error: o.crashed.class, Message: o.crashed.message})
	}
	return nil
}

// failRest sets the outcome of all kernels that have none.
func (o *objects) failRest(failed Outcome) {
	for _, id := range o.plan.Kernels {
		if !slices.Contains(o.reported, id) {
			failed.Kernel = id
			o.report(failed)
		}
	}
}

// librariesRemedy ends the message for an object that needs libraries and cannot be loaded. Candidates are
// blamed for libraries that the device lacks.
const librariesRemedy = " (the kernel calls a library of this device: install that version there, or tune without the kernel)"

// ordinary lists the C and compiler libraries, which every device has.
var ordinary = []string{"libc.", "libm.", "libdl.", "libpthread.", "libgcc_s.", "ld-linux"}

// callsLibraries reports whether an object needs libraries other than those of C.
func callsLibraries(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(ordinary, func(o string) bool { return strings.HasPrefix(name, o) })
	})
}
