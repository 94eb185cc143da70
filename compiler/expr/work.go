package expr

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Totals is what one execution of a workload computes and moves.
type Totals struct {
	// Flop counts the floating point operations: every arithmetic node of floating point type counts one, a reduction
	// step one more. Index arithmetic, loads, casts, selections and what is made of constants alone count nothing.
	Flop float64
	// IntegerOps counts the operations in sums of integers: in each step the addition, and the arithmetic on what is
	// added. Index arithmetic, loads, casts and selections count nothing.
	IntegerOps float64
	// Bytes is the least that is moved: every output once, and of every input and constant what is read of it, which
	// is all of it unless it is read at fewer places than it has elements.
	Bytes int64
}

// Flop is that of Totals with the most of every count.
func (w *Workload) Flop() float64 { return w.Totals(nil).Flop }

// IntegerOps is that of Totals with the most of every count.
func (w *Workload) IntegerOps() float64 { return w.Totals(nil).IntegerOps }

// Bytes is that of Totals with the most of every count.
func (w *Workload) Bytes() int64 { return w.Totals(nil).Bytes }

// Totals are those of an execution with numbers for the workload's counts; one that is missing is the most that it may
// be.
func (w *Workload) Totals(counts map[*Tensor]int64) (sum Totals) {
	// places are how many a tensor is read at, those that several loads read counted for each, and shares what part of
	// the places with the most of every count the loads have, at most.
	places, shares := map[*Tensor]float64{}, map[*Tensor]float64{}
	for _, t := range w.Stages {
		extents := extentsWith(t, counts)
		points := product(extents, t.variables())
		sum.Flop += points * flopOf(t)
		sum.IntegerOps += points * integerOpsOf(t)
		for _, l := range Loads(t.Body) {
			vars := variablesIn(l, t)
			places[l.Tensor] += product(extents, vars)
			shares[l.Tensor] = max(shares[l.Tensor], share(extents, vars))
		}
		places[t], shares[t] = product(extents, t.Axes), 1
	}
	for _, t := range w.Args() {
		elements := float64(array.Elements(t.Shape))
		sum.Bytes += int64(math.Round(min(places[t], elements*shares[t]))) * t.DType.Bytes()
	}
	return sum
}

// extentsWith are those of a tensor's axes and reduction axes in an execution with numbers for counts.
func extentsWith(t *Tensor, counts map[*Tensor]int64) map[*Var]int64 {
	extents := map[*Var]int64{}
	for _, v := range t.variables() {
		extents[v] = v.Extent
		if v.Limit == nil {
			continue
		}
		limit := Simplify(Rewrite(v.Limit, func(x Expr) Expr {
			if l, ok := x.(*Load); ok {
				if n, known := counts[l.Tensor]; known {
					return I(n)
				}
			}
			return x
		}))
		if n, ok := limit.(*Int); ok {
			extents[v] = min(v.Extent, max(0, n.Value))
		}
	}
	return extents
}

func product(extents map[*Var]int64, vars []*Var) float64 {
	p := 1.0
	for _, v := range vars {
		p *= float64(extents[v])
	}
	return p
}

// share is what part of the values of variables there are.
func share(extents map[*Var]int64, vars []*Var) float64 {
	p := 1.0
	for _, v := range vars {
		p *= float64(extents[v]) / float64(v.Extent)
	}
	return p
}

// variablesIn are those of a tensor's variables that a load's place depends on.
func variablesIn(l *Load, t *Tensor) (list []*Var) {
	for _, v := range t.variables() {
		for _, x := range l.Index {
			if Uses(x, v) {
				list = append(list, v)
				break
			}
		}
	}
	return list
}

// flopOf is the operations on floats of a point of a tensor, or of a step of its reduction.
func flopOf(t *Tensor) float64 {
	n := countFlop(t.Body)
	if t.Combiner != None && t.DType.IsFloat() {
		n++
	}
	return n
}

// integerOpsOf is the operations on integers of a step of a sum.
func integerOpsOf(t *Tensor) float64 {
	if t.Combiner != Sum || !t.DType.IsInt() {
		return 0
	}
	return 1 + countInteger(t.Body, t.DType)
}

// countInteger counts the arithmetic of one type, without that of indices and conditions.
func countInteger(e Expr, d array.DType) float64 {
	switch x := e.(type) {
	case *Load:
		return 0
	case *Select:
		return countInteger(x.A, d) + countInteger(x.B, d)
	case *Binary:
		n := countInteger(x.A, d) + countInteger(x.B, d)
		if x.DType() == d {
			n++
		}
		return n
	case *Cast:
		return countInteger(x.A, d)
	}
	return 0
}

// countFlop counts the arithmetic on floats, but for what is made of constants alone: how these are stored is no work.
func countFlop(e Expr) float64 {
	n, _, _ := arithmetic(e)
	return n
}

// arithmetic counts operations, loads, and those of them that are of constants.
func arithmetic(e Expr) (n float64, loads, constants int) {
	if l, ok := e.(*Load); ok {
		loads = 1
		if l.Tensor.Role == Constant {
			constants = 1
		}
	}
	Children(e, func(x Expr) {
		m, all, known := arithmetic(x)
		n, loads, constants = n+m, loads+all, constants+known
	})
	if isFloatArithmetic(e) && (constants == 0 || constants < loads) {
		n++
	}
	return n, loads, constants
}

func isFloatArithmetic(e Expr) bool {
	switch x := e.(type) {
	case *Binary:
		return x.A.DType().IsFloat()
	case *Unary:
		return x.DType().IsFloat()
	}
	return false
}
