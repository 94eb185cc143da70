package expr

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Totals holds the computation and memory traffic of one execution of a workload.
type Totals struct {
	// Flop counts the floating-point operations: one per arithmetic node of floating-point type, and one more per
	// reduction step. Index arithmetic, loads, casts, selections and constant expressions count nothing.
	Flop float64
	// IntegerOps counts the operations in integer sums: in each step the addition, and the arithmetic on its term.
	// Index arithmetic, loads, casts and selections count nothing.
	IntegerOps float64
	// Bytes is the minimum memory traffic: every output once, and every input and constant as far as it is read,
	// which is all of it unless it is read at fewer places than it has elements.
	Bytes int64
}

// Flop returns that of Totals with the maximum of every count.
func (w *Workload) Flop() float64 { return w.flop(nil) }

// IntegerOps returns that of Totals with the maximum of every count.
func (w *Workload) IntegerOps() float64 { return w.integerOps(nil) }

// Bytes returns that of Totals with the maximum of every count.
func (w *Workload) Bytes() int64 { return w.bytes(nil) }

// Mean returns the average totals of the executions with which kernels are timed.
func (w *Workload) Mean() (mean Totals) {
	var bytes float64
	for k := range Points {
		at := w.Totals(w.countsAt(k))
		mean.Flop, mean.IntegerOps, bytes = mean.Flop+at.Flop/Points, mean.IntegerOps+at.IntegerOps/Points, bytes+float64(at.Bytes)/Points
	}
	mean.Bytes = int64(math.Round(bytes))
	return mean
}

// countsAt returns the counts of the k-th point.
func (w *Workload) countsAt(k int) map[*Tensor]int64 {
	counts := map[*Tensor]int64{}
	for _, t := range w.Inputs {
		if t.Max > 0 {
			counts[t] = t.Point(k)
		}
	}
	return counts
}

// ExtentsAt returns the extents of variables at each point, the largest ones last; nil if all are fixed.
func (w *Workload) ExtentsAt(vars []*Var) (list [][]int64) {
	if !slices.ContainsFunc(vars, func(v *Var) bool { return v.Limit != nil }) {
		return nil
	}
	for k := range Points {
		extents, counts := make([]int64, len(vars)), w.countsAt(k)
		for i, v := range vars {
			extents[i] = v.extentWith(counts)
		}
		list = append(list, extents)
	}
	return list
}

// Totals returns the totals of an execution with the given counts; a missing one has its maximum.
func (w *Workload) Totals(counts map[*Tensor]int64) Totals {
	return Totals{Flop: w.flop(counts), IntegerOps: w.integerOps(counts), Bytes: w.bytes(counts)}
}

func (w *Workload) flop(counts map[*Tensor]int64) (total float64) {
	for _, t := range w.Stages {
		total += flopOf(t) * points(t.variables(), counts)
	}
	return total
}

func (w *Workload) integerOps(counts map[*Tensor]int64) (total float64) {
	for _, t := range w.Stages {
		total += integerOpsOf(t) * points(t.variables(), counts)
	}
	return total
}

func (w *Workload) bytes(counts map[*Tensor]int64) (total int64) {
	// places is the number of places at which a tensor is read, summed over its loads, and shares the largest share
	// of a load's places relative to the maximum of every count.
	places, shares := map[*Tensor]float64{}, map[*Tensor]float64{}
	for _, t := range w.Stages {
		for _, l := range Loads(t.Body) {
			vars := variablesIn(l, t)
			n := points(vars, counts)
			places[l.Tensor] += n
			shares[l.Tensor] = max(shares[l.Tensor], n/points(vars, nil))
		}
		places[t], shares[t] = points(t.Axes, counts), 1
	}
	for _, t := range w.Args() {
		elements := float64(array.Elements(t.Shape))
		total += int64(math.Round(min(places[t], elements*shares[t]))) * t.DType.Bytes()
	}
	return total
}

// points returns the number of combinations of variable values for the given counts.
func points(vars []*Var, counts map[*Tensor]int64) float64 {
	n := 1.0
	for _, v := range vars {
		n *= float64(v.extentWith(counts))
	}
	return n
}

// extentWith returns the extent in an execution with the given counts.
func (v *Var) extentWith(counts map[*Tensor]int64) int64 {
	if v.Limit == nil || len(counts) == 0 {
		return v.Extent
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
		return min(v.Extent, max(0, n.Value))
	}
	return v.Extent
}

// variablesIn returns those of a tensor's variables that a load's place depends on.
func variablesIn(l *Load, t *Tensor) (list []*Var) {
	for _, v := range t.variables() {
		if slices.ContainsFunc(l.Index, func(x Expr) bool { return Uses(x, v) }) {
			list = append(list, v)
		}
	}
	return list
}

// flopOf returns the floating-point operations per point of a tensor, or per step of its reduction, except for
// constant expressions, which depend on storage and are not work.
func flopOf(t *Tensor) float64 {
	n, _, _ := arithmetic(t.Body)
	if t.Combiner != None && t.DType.IsFloat() {
		n++
	}
	return n
}

// integerOpsOf returns the integer operations per step of a sum.
func integerOpsOf(t *Tensor) float64 {
	if t.Combiner != Sum || !t.DType.IsInt() {
		return 0
	}
	return 1 + countInteger(t.Body, t.DType)
}

// countInteger counts the arithmetic of one type, without indices and conditions.
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

// arithmetic counts operations, loads, and loads of constants.
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
