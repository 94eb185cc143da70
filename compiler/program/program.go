package program

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Program is a model as a sequence of kernel calls on values in memory.
type Program struct {
	Name   string
	Values []Value
	// Inputs and Outputs index Values, in the model's order and with the model's names and shapes.
	Inputs, Outputs []int
	// Open lists outputs with data-dependent extents.
	Open []Open
	// Required lists scalar bools that must be true after an execution, which otherwise fails.
	Required []Requirement
	// Extents lists those that each execution chooses, Varying the axes of inputs and outputs that depend on them.
	Extents []Extent
	Varying []Varying
	// Checks lists conditions on inputs without which an execution fails.
	Checks []IndexCheck
	// Tasks lists the distinct kernels in the order of their first call.
	Tasks []Task
	// Calls lists the calls in an order in which they can run, and Loops those parts that run several times.
	Calls []Call
	Loops []Loop
}

// Open gives the extent of an output's axis by a count, at most that of its shape. The layout is that of the full
// shape.
type Open struct {
	// Output is an index in Outputs, and Axis one in the shape of that output.
	Output, Axis int
	// Count is an index in Values, of a scalar of type i64.
	Count int
}

// Requirement is a scalar bool by its index in Values, and the message of an execution for which it is false.
type Requirement struct {
	Value int
	Why   string
}

// Results returns the values that an execution produces: the outputs, then the counts of open ones, each once, and
// then the requirements.
func (p *Program) Results() []int {
	results := slices.Clone(p.Outputs)
	for _, o := range p.Open {
		if !slices.Contains(results[len(p.Outputs):], o.Count) {
			results = append(results, o.Count)
		}
	}
	for _, r := range p.Required {
		results = append(results, r.Value)
	}
	return results
}

// Alignment is the guaranteed alignment of arguments without strides, in bytes.
const Alignment = 64

// Value is a tensor in memory.
type Value struct {
	Name  string
	DType array.DType
	Shape []int64
	// Data is set for constants.
	Data *array.Array
	// Alias is the index of the root value that contains this one; -1 for none.
	Alias int
	// Offset is the start of the value in the memory of Alias, in elements. Moves holds, by extent of the program,
	// the additional elements per unit of it; nil for none.
	Offset int64
	Moves  []int64
	// Turns holds, by loop of the program, the additional elements per iteration, and Lengths those for each iteration
	// that the loop has in all; nil for none.
	Turns, Lengths []int64
	// Strides holds the distances between neighbours along each dimension of Shape, in elements; nil if row-major.
	Strides []int64
}

// Task is one distinct kernel.
type Task struct {
	Workload *expr.Workload
	// Name is a readable description, for example "conv2d+add+relu 1x56x56x64 k3x3 -> 64"; it need not be unique.
	Name string
	// Count is the number of calls in the program.
	Count int
	// Executions is the average number of runs per execution, if calls have conditions or choose tasks by the
	// extents; 0 means Count.
	Executions float64
	// Flop is the number of floating-point operations per call.
	Flop float64
	// Untuned is set for a task that only serves small extents for which the user asked no kernels.
	Untuned bool
}

// Runs returns the average number of runs of a task per execution.
func (t Task) Runs() float64 { return cmp.Or(t.Executions, float64(t.Count)) }

// Call is one execution of a kernel.
type Call struct {
	// Name lists the model's nodes that are computed, joined by "+".
	Name string
	Task int
	// Args index Values, in the order of the workload's Args. They have the same elements at the same places; the
	// workload's canonical shapes may lack axes of extent 1 and merge neighbours.
	Args []int
	// Variants are equivalent tasks for smaller extents, in ascending order: the first sufficient one replaces Task.
	Variants []Variant
	// If lists the conditions under which an execution needs the results of the call: all must hold. Each can be
	// evaluated if those before it hold.
	If []Condition
}

// Variant is a task for extents within caps.
type Variant struct {
	Caps []Cap
	Task int
}

// Cap is the maximum of an extent, given by its index in the program's Extents.
type Cap struct {
	Extent int
	Max    int64
}

// Tasks returns the tasks of the call: the one for all extents, and then the variants'.
func (c Call) Tasks() []int {
	tasks := []int{c.Task}
	for _, v := range c.Variants {
		tasks = append(tasks, v.Task)
	}
	return tasks
}

// Root returns the value that contains the memory of v.
func (p *Program) Root(v int) int {
	if alias := p.Values[v].Alias; alias >= 0 {
		return alias
	}
	return v
}
