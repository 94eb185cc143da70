package program

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Condition is the required value of a scalar bool.
type Condition struct {
	// Value is an index in Values.
	Value int
	Is    bool
}

// need records whether and under which conditions a value is read, outer conditions first. A value with an
// unconditional reader, or readers under different conditions, is always needed.
type need struct {
	is   bool
	when []Condition
}

var always = need{is: true}

// maxConditions limits the conditions of a call: calls under deeper choices run more often than needed.
const maxConditions = 8

// holds is the assumed probability of a condition.
const holds = 0.5

// or returns the combined need of two readers.
func (n need) or(other need) need {
	switch {
	case !n.is:
		return other
	case !other.is:
		return n
	}
	alike := 0
	for alike < min(len(n.when), len(other.when)) && n.when[alike] == other.when[alike] {
		alike++
	}
	return need{true, n.when[:alike:alike]}
}

// and returns the need under further conditions.
func (n need) and(further ...Condition) need {
	n.when = slices.Clone(n.when)
	for _, c := range further {
		if len(n.when) < maxConditions && !slices.Contains(n.when, c) {
			n.when = append(n.when, c)
		}
	}
	return n
}

// FindConditions records the conditions under which an execution needs each call. A choice by one bool reads only
// one of two values, and calls for the other alone are not needed. A call may still read a value that was not
// computed, if the result that depends on it is unused: kernels are defined for any memory contents.
func (p *Program) FindConditions() {
	writers, needs, reads := map[int]int{}, map[int]need{}, make([][]need, len(p.Tasks))
	for k, c := range p.Calls {
		for _, v := range p.results(c) {
			writers[p.Root(v)] = k
		}
	}
	for _, l := range p.Loops {
		for _, s := range l.States { // not known before the loop
			writers[p.Root(s.Value)] = l.First - 1
		}
	}
	for k, t := range p.Tasks {
		reads[k] = readsOf(t.Workload)
	}
	for _, v := range p.Results() {
		needs[p.Root(v)] = always
	}
	for _, l := range p.Loops {
		for _, v := range l.Values() {
			needs[p.Root(v)] = always
		}
	}
	for k, c := range slices.Backward(p.Calls) {
		var n need
		for _, v := range p.results(c) {
			n = n.or(needs[p.Root(v)])
		}
		// A condition not known before the call cannot be tested, and later conditions may be computed only if it
		// holds.
		unknown := slices.IndexFunc(n.when, func(c Condition) bool {
			at, computed := writers[p.Root(c.Value)]
			return computed && at >= k
		})
		if unknown >= 0 {
			n.when = n.when[:unknown]
		}
		n.is = true // an unused result is computed anyway
		p.Calls[k].If = n.when
		if len(n.when) > 0 && len(p.Extents) == 0 {
			t := &p.Tasks[c.Task]
			t.Executions = t.Runs() - 1 + math.Pow(holds, float64(len(n.when)))
		}
		for i, r := range reads[c.Task] {
			when := make([]Condition, len(r.when))
			for j, of := range r.when {
				when[j] = Condition{c.Args[of.Value], of.Is}
			}
			root := p.Root(c.Args[i])
			needs[root] = needs[root].or(need{r.is, n.and(when...).when})
		}
	}
}

// Unconditional returns the program with all calls unconditional.
func (p *Program) Unconditional() *Program {
	q := *p
	q.Calls = slices.Clone(p.Calls)
	for k := range q.Calls {
		q.Calls[k].If = nil
	}
	return &q
}

// results returns the values that a call computes.
func (p *Program) results(c Call) []int {
	return c.Args[len(c.Args)-len(p.Tasks[c.Task].Workload.Outputs):]
}

// readsOf returns the need of each argument of a kernel, except its results. Conditions refer to arguments.
func readsOf(w *expr.Workload) []need {
	r := reader{args: map[*expr.Tensor]int{}, needs: map[*expr.Tensor]need{}}
	for i, t := range w.Inputs {
		r.args[t] = i
	}
	for _, t := range w.Outputs {
		r.needs[t] = always
	}
	for _, t := range slices.Backward(w.Stages) {
		for _, v := range slices.Concat(t.Axes, t.Reduce) {
			if v.Limit != nil {
				r.read(v.Limit, always)
			}
		}
		r.read(t.Body, r.needs[t])
	}
	list := make([]need, len(w.Inputs)+len(w.Constants))
	for i, t := range slices.Concat(w.Inputs, w.Constants) {
		list[i] = r.needs[t]
	}
	return list
}

// reader derives the needs of a kernel's tensors.
type reader struct {
	args  map[*expr.Tensor]int
	needs map[*expr.Tensor]need
}

// read records the reads of an expression with need n.
func (r reader) read(e expr.Expr, n need) {
	switch x := e.(type) {
	case *expr.Load:
		r.needs[x.Tensor] = r.needs[x.Tensor].or(n)
	case *expr.Select:
		if arg, ok := r.scalar(x.Cond); ok {
			r.read(x.Cond, n)
			r.read(x.A, n.and(Condition{arg, true}))
			r.read(x.B, n.and(Condition{arg, false}))
			return
		}
	}
	expr.Children(e, func(x expr.Expr) { r.read(x, n) })
}

// scalar returns the number of the argument whose only element a condition reads.
func (r reader) scalar(cond expr.Expr) (arg int, ok bool) {
	l, isLoad := cond.(*expr.Load)
	if !isLoad || l.Tensor.DType != array.Bool || array.Elements(l.Tensor.Shape) != 1 {
		return 0, false
	}
	arg, ok = r.args[l.Tensor]
	return arg, ok
}
