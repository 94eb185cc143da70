package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Runner compiles and runs cases in this process.
type Runner struct {
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Objects, if not nil, caches compiled objects.
	Objects *toolchain.Objects
	// Numerics limits the algorithms; tolerances are larger for those that round factors of products.
	Numerics schedule.Numerics
	// Storage selects the storage of float32 factors of products.
	Storage array.Storage
	// Emulator, if set, is the command that runs programs of the target.
	Emulator []string
}

// Run returns the results of the cases, in order, from one package that contains all of them. It returns an error
// if that package cannot be built or run; a single case that does not compile just fails.
func (r *Runner) Run(ctx context.Context, cases []Location) ([]Result, error) {
	results := make([]Result, len(cases))
	var parts []part
	for k, c := range cases {
		jobs, err := prepare(c.Dir, r.Storage)
		if err != nil {
			results[k] = *refused(c.Name, err)
			continue
		}
		results[k] = Result{Case: c.Name, Status: Pass}
		for _, j := range jobs {
			parts = append(parts, part{job: j, of: k})
		}
	}
	if len(parts) == 0 {
		return results, nil
	}
	outputs, err := r.execute(ctx, parts)
	switch {
	case err != nil && (len(cases) > 1 || ctx.Err() != nil):
		return nil, err
	case err != nil:
		results[0] = failed(cases[0].Name, err)
		return results, nil
	}
	for k, p := range parts {
		rounded, err := r.rounded(p.program)
		if err != nil {
			return nil, err
		}
		judge(&results[p.of], p.job, outputs[k], rounded)
	}
	return results, nil
}

// part is a job of a batch with the number of its case.
type part struct {
	job
	of int
}

// execute runs the jobs once, in one package, and returns the outputs of each.
func (r *Runner) execute(ctx context.Context, parts []part) (outputs []map[string]*array.Array, err error) {
	defer schedule.RecoverAs(&err)
	programs, inputs := make([]*program.Program, len(parts)), make([]map[string]*array.Array, len(parts))
	for k, p := range parts {
		programs[k], inputs[k] = p.program, p.inputs
	}
	return aot.RunOnce(ctx, programs, inputs, aot.Options{Target: r.Target, Toolchain: r.Toolchain, Objects: r.Objects, Emulator: r.Emulator}, aot.Defaults(r.Target, r.Numerics))
}

// rounded returns the allowed error of a program's outputs due to rounding, relative to the largest element.
func (r *Runner) rounded(p *program.Program) (float64, error) {
	if r.Numerics < schedule.Fast {
		return 0, nil
	}
	return tolerance.Bound(p, func(w *expr.Workload) (*schedule.Schedule, error) {
		return registry.Default(w, r.Target, r.Numerics)
	})
}

// judge compares the outputs of a job with the expected ones, and updates the case's result.
func judge(r *Result, j job, outputs map[string]*array.Array, rounded float64) {
	for _, name := range j.outputs {
		worst, err := compare(outputs[name], j.want[name], rounded)
		r.note(worst)
		if err != nil && r.Status == Pass {
			r.Status, r.Reason = Fail, oneLine(fmt.Errorf("%s: output %q: %w", j.set, name, err))
		}
	}
}

// note raises the result's largest error, which is invalid once a difference is not finite.
func (r *Result) note(worst float64) {
	switch {
	case math.IsInf(worst, 0):
		r.MaxError, r.infinite = nil, true
	case !r.infinite && (r.MaxError == nil || *r.MaxError < worst):
		r.MaxError = &worst
	}
}
