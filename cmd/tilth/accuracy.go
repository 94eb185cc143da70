package main

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/tolerance"
)

// accuracyFlags requests a measurement of a package's error against strict numerics.
type accuracyFlags struct {
	inputs string
	// max is the largest error allowed if limited returns true.
	max     float64
	limited func() bool
}

func (f *accuracyFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.inputs, "check", "", "`.npz` file of inputs to measure the error on")
	c.Flags().Float64Var(&f.max, "max-error", 0, "with --check: highest error allowed, a `number` relative to an output's largest value")
	f.limited = func() bool { return c.Flags().Changed("max-error") }
}

// check validates the flags.
func (f *accuracyFlags) check(model string) error {
	switch {
	case f.limited() && !(f.max > 0):
		return usagef("--max-error %g: want a positive number", f.max)
	case f.limited() && f.inputs == "":
		return usagef("--max-error %g needs --check INPUTS.npz, on which errors are measured", f.max)
	case f.inputs == stdio && model == stdio:
		return usagef("standard input is the model or the inputs of --check: name a file for one of them")
	}
	return nil
}

// measure returns a function that measures a package's error on the inputs of a file, or nil if not
// requested. This machine must have the target. The reference is plain, a program in the model's own types.
func (k *compileCommand) measure(ctx context.Context, t *target.Target, plain func() (*program.Program, error)) (func(*aot.Model) (*aot.Accuracy, error), error) {
	if k.accuracy.inputs == "" {
		return nil, nil
	}
	if err := runsHere(t); err != nil {
		return nil, fmt.Errorf("--check runs the package: %w: compile where the device is, or without --check", err)
	}
	file, done, err := k.inputFile(k.accuracy.inputs)
	if err != nil {
		return nil, err
	}
	defer done()
	inputs, err := npz.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--check: %w", err)
	}
	return func(m *aot.Model) (*aot.Accuracy, error) {
		inputs, err := m.Manifest().Adapt(inputs)
		if err != nil {
			return nil, fmt.Errorf("--check %s: %w", k.accuracy.inputs, err)
		}
		got, err := m.Run(inputs)
		if err != nil {
			return nil, fmt.Errorf("--check %s: %w", k.accuracy.inputs, err)
		}
		p, err := plain()
		if err != nil {
			return nil, err
		}
		want, err := k.strict(ctx, p, inputs)
		if err != nil {
			return nil, fmt.Errorf("--check: computing the result of strict numerics: %w", err)
		}
		return k.judgeError(got, want)
	}, nil
}

// strict runs a program on this processor with strict numerics and default schedules.
func (k *compileCommand) strict(ctx context.Context, p *program.Program, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	host, tc, err := localTarget(ctx, "native", 0, k.compiler)
	if err != nil {
		return nil, err
	}
	objects, err := k.objects()
	if err != nil {
		return nil, err
	}
	o := aot.Options{Target: host, Toolchain: tc, Parallel: runtime.NumCPU(), Objects: objects}
	outputs, err := aot.RunOnce(ctx, []*program.Program{p}, []map[string]*array.Array{inputs}, o, aot.Defaults(host, schedule.Strict))
	if err != nil {
		return nil, err
	}
	return outputs[0], nil
}

// judgeError returns the error of each output. It returns an error if one is not finite or exceeds the limit.
func (k *compileCommand) judgeError(got, want map[string]*array.Array) (*aot.Accuracy, error) {
	a := &aot.Accuracy{Numerics: k.numerics.level.String(), RelativeErrors: map[string]float64{}}
	for name := range want {
		a.RelativeErrors[name] = tolerance.Relative(got[name], want[name])
	}
	output, worst := a.Worst()
	remedy := "use more accurate --numerics"
	if k.storage.always().WeightBits > 0 {
		remedy += " or --weights"
	}
	switch {
	case math.IsInf(worst, 1) && want[output].IsZero():
		return nil, fmt.Errorf("with strict numerics, output %q is all zeros on the inputs of --check, so relative errors are undefined: choose other inputs", output)
	case math.IsInf(worst, 1):
		return nil, fmt.Errorf("output %q has values that are not finite where strict numerics have finite ones: %s", output, remedy)
	case k.accuracy.limited() && worst > k.accuracy.max:
		return nil, fmt.Errorf("output %q differs from that of strict numerics by %.3g of its largest value, and --max-error allows %g: %s, or allow more",
			output, worst, k.accuracy.max, remedy)
	}
	return a, nil
}
