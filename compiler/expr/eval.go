package expr

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/array"
)

// evalChunk is the smallest number of body evaluations worth a goroutine.
const evalChunk = 1 << 15

// Evaluate computes a workload in Go: args are the inputs, then the constants; the result holds the outputs in order.
//
// It is the reference semantics of expressions: every float32 node is rounded to float32, float16 and bfloat16 are
// computed in float64 and rounded by casts and stores, and reductions run in the order of their axes.
// Floating-point sums are accumulated in float64 and rounded at the end. A load out of bounds is an error. Arrays
// are row-major, regardless of the tensors' strides. Elements beyond the limit of an axis have no value: all of their
// bits are set, so that a float is NaN and no sum that reads one is right by accident.
func Evaluate(w *Workload, args []*array.Array) ([]*array.Array, error) {
	known := append(append([]*Tensor{}, w.Inputs...), w.Constants...)
	if len(args) != len(known) {
		return nil, fmt.Errorf("evaluate: %d arguments where the workload has %d", len(args), len(known))
	}
	values := map[*Tensor]*array.Array{}
	for k, t := range known {
		if err := checkArg(t, args[k]); err != nil {
			return nil, fmt.Errorf("evaluate: argument %d: %w", k, err)
		}
		values[t] = args[k]
	}
	for _, t := range w.Stages {
		out, err := evaluateStage(t, values)
		if err != nil {
			return nil, fmt.Errorf("evaluate: tensor %s: %w", t.Name, err)
		}
		values[t] = out
	}
	outs := make([]*array.Array, len(w.Outputs))
	for k, t := range w.Outputs {
		outs[k] = values[t]
	}
	return outs, nil
}

// OutputShapes returns the number of elements along each axis of each output that a workload computes for args.
func OutputShapes(w *Workload, args []*array.Array) [][]int64 {
	c := &compiler{values: map[*Tensor]*array.Array{}}
	for k, t := range w.Inputs {
		c.values[t] = args[k]
	}
	shapes := make([][]int64, len(w.Outputs))
	for k, t := range w.Outputs {
		shapes[k] = c.counts(t.Axes)
	}
	return shapes
}

func checkArg(t *Tensor, a *array.Array) error {
	if a.DType != t.DType || !slices.Equal(a.Shape, t.Shape) {
		return fmt.Errorf("%v%v, want %v%v", a.DType, a.Shape, t.DType, t.Shape)
	}
	return a.Check()
}

// frame is the state of one goroutine: the values of the stage's variables, and the first error.
type frame struct {
	vars []int64
	err  error
}

func (f *frame) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// evaluateStage computes one tensor, in parallel over its elements.
func evaluateStage(t *Tensor, values map[*Tensor]*array.Array) (*array.Array, error) {
	c := &compiler{slots: map[*Var]int{}, values: values}
	for _, v := range t.variables() {
		c.slots[v] = len(c.slots)
	}
	out := array.New(t.DType, t.Shape...)
	if slices.ContainsFunc(t.Axes, func(v *Var) bool { return v.Limit != nil }) {
		for k := range out.Data {
			out.Data[k] = 0xff
		}
	}
	run := c.stage(t, out)
	n, steps := out.Len(), int64(1)
	for _, v := range t.Reduce {
		steps *= v.Extent
	}
	workers := max(1, min(int64(runtime.GOMAXPROCS(0)), n, n*steps/evalChunk))
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			f := &frame{vars: make([]int64, len(c.slots))}
			run(f, n*k/workers, n*(k+1)/workers)
			errs[k] = f.err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// seek sets the first len(shape) variables to the position of element i.
func (f *frame) seek(shape []int64, i int64) {
	for k := len(shape) - 1; k >= 0; k-- {
		f.vars[k] = i % shape[k]
		i /= shape[k]
	}
}

// next moves the variables [from, from+len(extents)) to the next position, false after the last (all are then zero).
func (f *frame) next(from int, extents []int64) bool {
	for k := len(extents) - 1; k >= 0; k-- {
		f.vars[from+k]++
		if f.vars[from+k] < extents[k] {
			return true
		}
		f.vars[from+k] = 0
	}
	return false
}

// stage compiles a tensor to a function that computes its elements lo <= i < hi.
func (c *compiler) stage(t *Tensor, out *array.Array) func(f *frame, lo, hi int64) {
	var put func(f *frame, i int64)
	if t.DType.IsFloat() {
		value := c.floatElement(t)
		put = func(f *frame, i int64) { out.SetFloat(i, value(f)) }
	} else {
		value := c.intElement(t)
		put = func(f *frame, i int64) { out.SetInt(i, value(f)) }
	}
	there := c.counts(t.Axes)
	return func(f *frame, lo, hi int64) {
		f.seek(t.Shape, lo)
		for i := lo; i < hi && f.err == nil; i++ {
			if f.isBefore(there) {
				put(f, i)
			}
			f.next(0, t.Shape)
		}
	}
}

// isBefore reports whether the first variables are below the given counts.
func (f *frame) isBefore(counts []int64) bool {
	for k, n := range counts {
		if f.vars[k] >= n {
			return false
		}
	}
	return true
}

// counts returns the number of values of each variable in this execution.
func (c *compiler) counts(vars []*Var) []int64 {
	counts := make([]int64, len(vars))
	for k, v := range vars {
		counts[k] = v.Extent
		if v.Limit != nil {
			counts[k] = max(0, min(v.Extent, c.int(v.Limit)(&frame{})))
		}
	}
	return counts
}

// floatElement compiles one element of a floating-point tensor, including its reduction.
func (c *compiler) floatElement(t *Tensor) floatFn {
	if t.Combiner == None {
		return c.float(t.Body)
	}
	if dot := c.dot(t); dot != nil {
		return dot
	}
	body, combine := c.float(t.Body), floatCombiners[t.Combiner]
	round := rounding(t.DType)
	if t.Combiner == Sum {
		round = rounding(array.Float64)
	}
	identity := t.Combiner.Identity(t.DType).(*Float).Value
	from, extents := len(t.Axes), c.counts(t.Reduce)
	if slices.Contains(extents, 0) {
		return func(*frame) float64 { return identity }
	}
	return func(f *frame) float64 {
		acc := identity
		for more := true; more && f.err == nil; more = f.next(from, extents) {
			acc = round(combine(acc, body(f)))
		}
		return acc
	}
}

func (c *compiler) intElement(t *Tensor) intFn {
	if t.Combiner == None {
		return c.int(t.Body)
	}
	body, combine := c.int(t.Body), intOp(combinerOps[t.Combiner], t.DType)
	identity := t.Combiner.Identity(t.DType).(*Int).Value
	from, extents := len(t.Axes), c.counts(t.Reduce)
	if slices.Contains(extents, 0) {
		return func(*frame) int64 { return identity }
	}
	return func(f *frame) int64 {
		acc := identity
		for more := true; more && f.err == nil; more = f.next(from, extents) {
			acc = combine(f, acc, body(f))
		}
		return acc
	}
}

// dot compiles the element of a float32 sum of products of two affine loads, the inner loop of every convolution
// and matrix product, without a closure call per step; nil for other tensors.
func (c *compiler) dot(t *Tensor) floatFn {
	mul, ok := t.Body.(*Binary)
	if !ok || t.Combiner != Sum || t.DType != array.Float32 || mul.Op != Mul {
		return nil
	}
	a, okA := c.stream(mul.A, t.Reduce[len(t.Reduce)-1])
	b, okB := c.stream(mul.B, t.Reduce[len(t.Reduce)-1])
	if !okA || !okB {
		return nil
	}
	extents := c.counts(t.Reduce)
	if slices.Contains(extents, 0) {
		return func(*frame) float64 { return 0 }
	}
	inner := extents[len(extents)-1]
	from, extents := len(t.Axes), extents[:len(extents)-1]
	return func(f *frame) float64 {
		acc := 0.0
		x, y, dx, dy := a.data, b.data, a.stride, b.stride
		for more := true; more; more = f.next(from, extents) {
			i, j := a.offset(f), b.offset(f)
			for range inner {
				acc += float64(x[i] * y[j])
				i += dx
				j += dy
			}
		}
		return acc
	}
}
