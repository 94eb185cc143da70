package expr

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// RowMajorStrides are the distances between neighbours along each dimension of a tensor that lies alone in memory.
func RowMajorStrides(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	step := int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = step
		step *= shape[k]
	}
	return strides
}

// MemoryStrides are the tensor's strides, spelled out where it is row-major.
func (t *Tensor) MemoryStrides() []int64 {
	if t.Strides != nil {
		return t.Strides
	}
	return RowMajorStrides(t.Shape)
}

// SpanElements is how many elements of memory lie between the tensor's first element and its last, both counted: with
// strides, the gaps between are counted, too.
func (t *Tensor) SpanElements() int64 {
	span := int64(1)
	for k, s := range t.MemoryStrides() {
		span += (t.Shape[k] - 1) * s
	}
	return span
}

// checkStrides refuses strides that are not row-major with gaps: dimensions in order of memory, no two elements at one
// place.
func (t *Tensor) checkStrides() error {
	if t.Strides == nil {
		return nil
	}
	if len(t.Strides) != len(t.Shape) {
		return fmt.Errorf("%d strides for shape %v", len(t.Strides), t.Shape)
	}
	least := int64(1)
	for k := len(t.Shape) - 1; k >= 0; k-- {
		if t.Strides[k] < least {
			return fmt.Errorf("strides %v of shape %v overlap", t.Strides, t.Shape)
		}
		if t.Shape[k] <= 0 {
			return fmt.Errorf("extent %d in shape %v", t.Shape[k], t.Shape)
		}
		if _, err := array.CheckedBytes(t.DType, []int64{t.Strides[k], t.Shape[k]}); err != nil {
			return fmt.Errorf("strides %v of shape %v: %w", t.Strides, t.Shape, err)
		}
		least = t.Strides[k] * t.Shape[k]
	}
	return nil
}

// checkMemory checks the strides of a workload's tensors: only inputs and outputs may have any.
func (w *Workload) checkMemory() error {
	for _, t := range w.Constants {
		if t.Strides != nil {
			return fmt.Errorf("workload: constant %s has strides", t.Name)
		}
	}
	for _, t := range w.Stages {
		if t.Strides != nil && !slices.Contains(w.Outputs, t) {
			return fmt.Errorf("workload: tensor %s has strides and is not an output", t.Name)
		}
	}
	for _, t := range w.Args() {
		if err := t.checkStrides(); err != nil {
			return fmt.Errorf("workload: tensor %s: %w", t.Name, err)
		}
	}
	return nil
}

// joinable reports whether dimensions k and k+1 lie in memory as one.
func (t *Tensor) joinable(k int) bool {
	return t.Strides == nil || t.Strides[k] == t.Strides[k+1]*t.Shape[k+1]
}

// joinStrides are the strides once dimensions k and k+1 are one.
func joinStrides(strides []int64, k int) []int64 {
	if strides == nil {
		return nil
	}
	return slices.Concat(strides[:k], strides[k+1:])
}

// keptStrides are the strides of the dimensions that squeeze keeps; that of an extent of one says nothing and becomes
// one.
func (t *Tensor) keptStrides(kept []int) []int64 {
	if t.Strides == nil {
		return nil
	}
	strides := pick(t.Strides, kept)
	for i, k := range kept {
		if t.Shape[k] == 1 {
			strides[i] = 1
		}
	}
	return strides
}
