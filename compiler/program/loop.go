package program

import (
	"slices"
	"strings"
)

// Loop is a range of calls that an execution repeats.
type Loop struct {
	// Name is that of the model's node.
	Name string
	// First and End delimit the calls: those from First on and before End. Loops are nested or apart, outer ones first
	// in the list.
	First, End int
	// Counter is the value with the number of the iteration, and Iterations the one with how many there are, up to
	// Most; both are i64 with one element.
	Counter, Iterations int
	Most                int64
	// Count is the number of iterations by extents of the program, as in "steps - 1"; empty if it depends on data.
	Count string
	// States lists what the iterations carry on. If While is set, an iteration runs only if state 0, a bool, is true.
	States []State
	While  bool
}

// State is what an iteration leaves to the next one: the value has the elements of Init in the first iteration, and
// those that the previous one computed for Next in others. After the loop it has what the last iteration left. The
// three are as large as each other, row-major, and Value and Next do not overlap.
type State struct{ Init, Value, Next int }

// Execution holds the steps of an execution, for Execute.
type Execution struct {
	// Call makes call k.
	Call func(k int) error
	// Begin sets the states of a loop to their initial values and returns the number of iterations.
	Begin func(l Loop) (iterations int64)
	// Step begins an iteration, unless the states end the loop. Advance ends it: the states get their next values.
	Step    func(l Loop, iteration int64) (runs bool)
	Advance func(l Loop)
}

// Execute makes the calls of an execution in order.
func (p *Program) Execute(e Execution) error { return p.execute(e, 0, len(p.Calls), 0) }

// execute makes the calls in a range, which contains no loop before the given one.
func (p *Program) execute(e Execution, first, end, loop int) error {
	for k := first; k < end; {
		for loop < len(p.Loops) && p.Loops[loop].First < k {
			loop++
		}
		if loop == len(p.Loops) || p.Loops[loop].First > k {
			if err := e.Call(k); err != nil {
				return err
			}
			k++
			continue
		}
		l := p.Loops[loop]
		iterations := e.Begin(l)
		for i := int64(0); i < iterations && e.Step(l, i); i++ {
			if err := p.execute(e, l.First, l.End, loop+1); err != nil {
				return err
			}
			e.Advance(l)
		}
		k = l.End
	}
	return nil
}

// Repeats returns the largest number of times that an execution makes a call.
func (p *Program) Repeats(call int) int64 {
	times := int64(1)
	for _, l := range p.Loops {
		if l.First <= call && call < l.End {
			times *= l.Most
		}
	}
	return times
}

// IsRepeated reports whether a call is in a loop.
func (p *Program) IsRepeated(call int) bool {
	return slices.ContainsFunc(p.Loops, func(l Loop) bool { return l.First <= call && call < l.End })
}

// CountOf returns the number of times that an execution makes a call, by extents of the program; empty for one. ok is
// false if it depends on data.
func (p *Program) CountOf(call int) (count string, ok bool) {
	var factors []string
	for _, l := range p.Loops {
		if l.First > call || call >= l.End {
			continue
		}
		if l.Count == "" || l.While {
			return "", false
		}
		factors = append(factors, "("+l.Count+")")
	}
	return strings.Join(factors, "*"), true
}

// CountRepeats adds the repeated runs of calls in loops to those of their tasks.
func (p *Program) CountRepeats() {
	for k, c := range p.Calls {
		again := float64(p.Repeats(k) - 1)
		if again == 0 {
			continue
		}
		for _, task := range c.Tasks() {
			t := &p.Tasks[task]
			t.Executions = t.Runs() + again/float64(len(c.Tasks()))
		}
	}
}

// Span returns the calls between which what a call reads and writes must stay: those of the outermost loop around it.
func (p *Program) Span(call int) (first, last int) {
	for _, l := range p.Loops {
		if l.First <= call && call < l.End {
			return l.First, l.End - 1
		}
	}
	return call, call
}

// Values returns the values that a loop reads or writes beside its calls.
func (l Loop) Values() []int {
	values := []int{l.Counter, l.Iterations}
	for _, s := range l.States {
		values = append(values, s.Init, s.Value, s.Next)
	}
	return values
}
