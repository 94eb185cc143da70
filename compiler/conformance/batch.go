package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/trap"
)

// Runner compiles and runs cases in this process.
type Runner struct {
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Objects, if not nil, keeps what was compiled.
	Objects *toolchain.Objects
}

// Run returns the results of the cases, in their order, from one package that has all of them. The error says why
// there is no such package; a single case that does not compile fails instead.
func (r *Runner) Run(ctx context.Context, cases []Location) ([]Result, error) {
	results := make([]Result, len(cases))
	var parts []part
	for k, c := range cases {
		jobs, err := prepare(c.Dir)
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
		judge(&results[p.of], p.job, outputs[k])
	}
	return results, nil
}

// part is a job of a batch and the number of its case.
type part struct {
	job
	of int
}

// execute runs the jobs once, in a package that has all of them, and returns the outputs of each.
func (r *Runner) execute(ctx context.Context, parts []part) (outputs []map[string]*array.Array, err error) {
	defer trap.AsError(&err)
	programs, inputs := make([]*program.Program, len(parts)), make([]map[string]*array.Array, len(parts))
	for k, p := range parts {
		programs[k], inputs[k] = p.program, p.inputs
	}
	return aot.RunOnce(ctx, programs, inputs, aot.Options{Target: r.Target, Toolchain: r.Toolchain, Objects: r.Objects}, r.schedules)
}

// schedules are the default ones.
func (r *Runner) schedules(tasks []program.Task) ([]aot.Choice, error) {
	choices := make([]aot.Choice, len(tasks))
	for k, task := range tasks {
		s, err := registry.Space(task.Workload, r.Target, schedule.Default)
		if err != nil {
			return nil, err
		}
		applied, err := s.Apply(s.Default())
		if err != nil {
			return nil, fmt.Errorf("default schedule of %s: %w", task.Name, err)
		}
		choices[k] = aot.Choice{Trace: applied.Trace(), Origin: "default"}
	}
	return choices, nil
}

// judge compares the outputs of a job with what is wanted, and enters into its case's result what it finds.
func judge(r *Result, j job, outputs map[string]*array.Array) {
	for _, name := range j.outputs {
		worst, err := compare(outputs[name], j.want[name])
		r.note(worst)
		if err != nil && r.Status == Pass {
			r.Status, r.Reason = Fail, oneLine(fmt.Errorf("%s: output %q: %w", j.set, name, err))
		}
	}
}

// note raises the result's largest error, which is lost once a difference is not finite.
func (r *Result) note(worst float64) {
	switch {
	case math.IsInf(worst, 0):
		r.MaxError, r.infinite = nil, true
	case !r.infinite && (r.MaxError == nil || *r.MaxError < worst):
		r.MaxError = &worst
	}
}
