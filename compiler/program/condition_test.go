package program_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// maker builds programs whose values are vectors of four floats or single bools.
type maker struct {
	t *testing.T
	program.Program
}

func (m *maker) value(d array.DType, shape ...int64) int {
	m.Values = append(m.Values, program.Value{Name: fmt.Sprint(len(m.Values)), DType: d, Shape: shape, Alias: -1})
	return len(m.Values) - 1
}

func (m *maker) input(d array.DType, shape ...int64) int {
	v := m.value(d, shape...)
	m.Inputs = append(m.Inputs, v)
	return v
}

// call adds a call that computes each element of a new value from those of others.
func (m *maker) call(of func(at func(k int) expr.Expr) expr.Expr, args ...int) int {
	tensors := make([]*expr.Tensor, len(args))
	for k, v := range args {
		tensors[k] = expr.NewInput(m.Values[v].Name, m.Values[v].DType, m.Values[v].Shape...)
	}
	out := expr.Compute("out", []int64{4}, func(i []expr.Expr) expr.Expr {
		return of(func(k int) expr.Expr { return tensors[k].At(i[:len(tensors[k].Shape)]...) })
	})
	w, err := expr.NewWorkload([]*expr.Tensor{out}, tensors...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.Tasks = append(m.Tasks, program.Task{Workload: w, Count: 1})
	m.Calls = append(m.Calls, program.Call{Task: len(m.Tasks) - 1, Args: append(slices.Clone(args), m.value(out.DType, 4))})
	return len(m.Values) - 1
}

func negated(at func(k int) expr.Expr) expr.Expr { return expr.Un(expr.Neg, at(0)) }

func sum(at func(k int) expr.Expr) expr.Expr { return expr.AddE(at(0), at(1)) }

// chosen returns argument 1 where argument 0 holds, and argument 2 elsewhere.
func chosen(at func(k int) expr.Expr) expr.Expr { return expr.Sel(at(0), at(1), at(2)) }

// want checks the conditions of each call.
func (m *maker) want(outputs []int, conditions ...string) {
	m.t.Helper()
	m.Outputs = outputs
	m.FindConditions()
	for k, c := range m.Calls {
		got := ""
		for _, condition := range c.If {
			got += fmt.Sprintf("%d=%v ", condition.Value, condition.Is)
		}
		if got != conditions[k] {
			m.t.Errorf("call %d has the condition %q, want %q", k, got, conditions[k])
		}
	}
}

func TestUnchosenBranchesAreNotNeeded(t *testing.T) {
	m := &maker{t: t}
	c, x := m.input(array.Bool), m.input(array.Float32, 4) // values 0 and 1
	a := m.call(negated, m.call(negated, x))
	b := m.call(negated, x)
	m.want([]int{m.call(chosen, c, a, b)}, "0=true ", "0=true ", "0=false ", "")
}

func TestChoiceWithinAChoiceHasBothConditions(t *testing.T) {
	m := &maker{t: t}
	c, d, x := m.input(array.Bool), m.input(array.Bool), m.input(array.Float32, 4) // 0 to 2
	shared := m.call(negated, x)
	inner := m.call(chosen, d, m.call(negated, shared), m.call(sum, shared, shared))
	m.want([]int{m.call(chosen, c, inner, x)}, "0=true ", "0=true 1=true ", "0=true 1=false ", "0=true ", "")
}

// TestBranchesCountAsRunHalfTheTime matters because searches spend more time on tasks that run more often.
func TestBranchesCountAsRunHalfTheTime(t *testing.T) {
	m := &maker{t: t}
	c, d, x := m.input(array.Bool), m.input(array.Bool), m.input(array.Float32, 4)
	inner := m.call(chosen, d, m.call(negated, x), x)
	m.want([]int{m.call(chosen, c, inner, x)}, "0=true 1=true ", "0=true ", "")
	for k, want := range []float64{0.25, 0.5, 1} {
		if got := m.Tasks[k].Runs(); got != want {
			t.Errorf("task %d is run %g times, want %g", k, got, want)
		}
	}
	joined := program.Join("twice", []*program.Program{&m.Program, &m.Program})
	if got := joined.Tasks[0].Runs(); got != 0.5 || joined.Tasks[0].Count != 2 {
		t.Errorf("two programs run a task %g times in %d calls, want 0.5 in 2", got, joined.Tasks[0].Count)
	}
}

func TestChoiceWithinTheSameOneAddsNoCondition(t *testing.T) {
	m := &maker{t: t}
	c, x := m.input(array.Bool), m.input(array.Float32, 4)
	y := m.call(chosen, c, m.call(negated, x), x)
	m.want([]int{m.call(chosen, c, y, x)}, "0=true ", "0=true ", "")
}

// TestChainOfChoicesHasBoundedConditions checks that the cost of a chain is not quadratic in its length.
func TestChainOfChoicesHasBoundedConditions(t *testing.T) {
	m := &maker{t: t}
	x := m.input(array.Float32, 4)
	y := m.call(negated, x)
	for range 20 {
		y = m.call(chosen, m.input(array.Bool), y, x)
	}
	m.Outputs = []int{y}
	m.FindConditions()
	if first := m.Calls[0].If; len(first) != 8 || first[0].Value != m.Inputs[20] {
		t.Errorf("the innermost call has the conditions %v, want those of the outer 8 choices", first)
	}
}

func TestSharedCallsAreUnconditional(t *testing.T) {
	m := &maker{t: t}
	c, x := m.input(array.Bool), m.input(array.Float32, 4)
	both, other, output := m.call(negated, x), m.call(negated, x), m.call(negated, x)
	y := m.call(chosen, c, m.call(sum, both, output), m.call(sum, both, other))
	z := m.call(sum, other, y)
	m.want([]int{z, output}, "", "", "", "0=true ", "0=false ", "", "")
}

// TestCallsBeforeTheirConditionAreUnconditional checks that only calls after the call that computes a
// condition depend on it.
func TestCallsBeforeTheirConditionAreUnconditional(t *testing.T) {
	m := &maker{t: t}
	x := m.input(array.Float32, 4)
	early := m.call(negated, m.call(negated, x))
	c := m.value(array.Bool)
	out := expr.Compute("c", nil, func([]expr.Expr) expr.Expr {
		return expr.Bin(expr.Lt, expr.F(array.Float32, 0), expr.F(array.Float32, 1))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{out})
	if err != nil {
		t.Fatal(err)
	}
	m.Tasks = append(m.Tasks, program.Task{Workload: w, Count: 1})
	m.Calls = append(m.Calls, program.Call{Task: len(m.Tasks) - 1, Args: []int{c}})
	late := m.call(negated, x)
	m.want([]int{m.call(chosen, c, early, late)}, "", "", "", fmt.Sprint(c, "=false "), "")
}

// TestChoiceByElementsNeedsBoth checks that a side is unused only if one bool decides for all elements.
func TestChoiceByElementsNeedsBoth(t *testing.T) {
	m := &maker{t: t}
	c, x := m.input(array.Bool, 4), m.input(array.Float32, 4)
	m.want([]int{m.call(chosen, c, m.call(negated, x), x)}, "", "")
}

func TestEvaluationMakesTheCallsThatAreNeeded(t *testing.T) {
	m := &maker{t: t}
	c, x := m.input(array.Bool), m.input(array.Float32, 4)
	m.want([]int{m.call(chosen, c, m.call(negated, x), m.call(sum, x, x))}, "0=true ", "0=false ", "")
	for is, want := range []float64{2, -1} {
		truth := array.New(array.Bool)
		truth.SetInt(0, int64(is))
		made := 0
		outs, err := evaluate.Calls(&m.Program, map[string]*array.Array{"0": truth, "1": array.FromFloat32([]float32{1, 1, 1, 1}, 4)},
			func(program.Call, []*array.Array, []*array.Array) { made++ })
		if err != nil {
			t.Fatal(err)
		}
		if got := outs[m.Values[m.Outputs[0]].Name].Float(3); got != want || made != 2 {
			t.Errorf("with %d the result is %g after %d calls, want %g after 2", is, got, made, want)
		}
	}
}

// TestStateOfALoopIsNoConditionBeforeIt: what an iteration chooses by a state is computed before the loop, in which
// the state may change.
func TestStateOfALoopIsNoConditionBeforeIt(t *testing.T) {
	m := &maker{t: t}
	c, x := m.input(array.Bool), m.input(array.Float32, 4)
	before, state, n := m.call(negated, x), m.value(array.Bool), m.value(array.Int64)
	m.Loops = []program.Loop{{First: 1, End: 3, Counter: n, Iterations: n, States: []program.State{{Init: c, Value: state, Next: c}}}}
	m.want([]int{m.call(chosen, state, m.call(sum, before, before), x)}, "", fmt.Sprint(state, "=true "), "")
}
