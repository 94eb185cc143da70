package pass

import "github.com/tilth-dev/tilth/compiler/ir"

// Step is a named pass. Dumps use the name.
type Step struct {
	Name string
	Run  func(*ir.Func) (*ir.Func, error)
}

// Total returns a step for a pass that cannot fail.
func Total(name string, run func(*ir.Func) *ir.Func) Step {
	return Step{name, func(f *ir.Func) (*ir.Func, error) { return run(f), nil }}
}

// Apply runs steps in order on f and returns the final program or the first error. If see is not nil, Apply calls
// it with f under the name "lower", and then with the result of each step.
func Apply(f *ir.Func, steps []Step, see func(step string, f *ir.Func)) (*ir.Func, error) {
	if see == nil {
		see = func(string, *ir.Func) {}
	}
	see("lower", f)
	for _, s := range steps {
		var err error
		if f, err = s.Run(f); err != nil {
			return nil, err
		}
		see(s.Name, f)
	}
	return f, nil
}
