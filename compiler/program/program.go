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
	// Open are outputs whose extents depend on data.
	Open []Open
	// Extents are those that each execution chooses, Varying the axes of inputs and outputs that they are of.
	Extents []Extent
	Varying []Varying
	// Tasks are the distinct kernels, in the order of their first call.
	Tasks []Task
	// Calls are in an order in which they can run.
	Calls []Call
}

// Open says that an output has on one axis as many elements as are counted, at most as many as its shape has there.
// Those that are counted lie where they would lie if it had all.
type Open struct {
	// Output is an index in Outputs, and Axis one in the shape of that output.
	Output, Axis int
	// Count is an index in Values, of a scalar of type i64.
	Count int
}

// Results are the values of all that an execution leaves: the outputs, and then the counts of those that are open,
// each once.
func (p *Program) Results() []int {
	results := slices.Clone(p.Outputs)
	for _, o := range p.Open {
		if !slices.Contains(results[len(p.Outputs):], o.Count) {
			results = append(results, o.Count)
		}
	}
	return results
}

// Alignment is what kernels may rely on for arguments without strides, in bytes.
const Alignment = 64

// Value is a tensor in memory.
type Value struct {
	Name  string
	DType array.DType
	Shape []int64
	// Data is set for constants.
	Data *array.Array
	// Alias is the index of the value in whose memory this one lies, which lies in no other's; or -1.
	Alias int
	// Offset is where the value begins in the memory of Alias, in elements; and Moves, by extent of the program, how
	// many elements further for each that an execution has of it. nil = none.
	Offset int64
	Moves  []int64
	// Strides are the distances between neighbours along each dimension of Shape, in elements; nil when the value is
	// row-major.
	Strides []int64
}

// Task is one distinct kernel.
type Task struct {
	Workload *expr.Workload
	// Name describes it to people, for example "conv2d+add+relu 1x56x56x64 k3x3 -> 64"; it need not be unique.
	Name string
	// Count is how often the program calls it.
	Count int
	// Executions is how often the program runs it on average, where calls choose among tasks by the extents of an
	// execution, or have conditions; 0 = Count.
	Executions float64
	// Flop is the floating point operations of one call.
	Flop float64
}

// Runs is how often the program runs a task on average.
func (t Task) Runs() float64 { return cmp.Or(t.Executions, float64(t.Count)) }

// Call is one execution of a kernel.
type Call struct {
	// Name has the names of the model's nodes that are computed, joined by "+".
	Name string
	Task int
	// Args index Values, in the order of the workload's Args. They have the same elements at the same places; the
	// workload's canonical shapes may lack axes of extent 1 and join neighbours.
	Args []int
	// Variants are tasks that do the same for smaller extents, in ascending order: the first one that suffices stands
	// in for Task.
	Variants []Variant
	// If are the conditions under which an execution needs what the call computes: all must hold. Each can be asked
	// where those before it hold.
	If []Condition
}

// Variant is a task for extents that are within caps.
type Variant struct {
	Caps []Cap
	Task int
}

// Cap is the most that an extent may be, by its index in the program's Extents.
type Cap struct {
	Extent int
	Most   int64
}

// Tasks are those of the call: the one for all extents, and then the variants'.
func (c Call) Tasks() []int {
	tasks := []int{c.Task}
	for _, v := range c.Variants {
		tasks = append(tasks, v.Task)
	}
	return tasks
}

// Root is the value whose memory value v lies in.
func (p *Program) Root(v int) int {
	if alias := p.Values[v].Alias; alias >= 0 {
		return alias
	}
	return v
}
