package expr

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// RowMajorStrides returns the strides of a dense row-major tensor.
func RowMajorStrides(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	step := int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = step
		step *= shape[k]
	}
	return strides
}

// MemoryStrides returns the tensor's strides, computed if it is row-major.
func (t *Tensor) MemoryStrides() []int64 {
	if t.Strides != nil {
		return t.Strides
	}
	return RowMajorStrides(t.Shape)
}

// SpanElements returns the number of elements of memory from the tensor's first element to its last, inclusive.
// With strides, it includes the gaps.
func (t *Tensor) SpanElements() int64 {
	span := int64(1)
	for k, s := range t.MemoryStrides() {
		span += (t.Shape[k] - 1) * s
	}
	return span
}

// checkStrides rejects strides other than row-major with gaps: dimensions in memory order, without overlap.
func (t *Tensor) checkStrides() error {
	if t.Strides == nil {
		return nil
	}
	if len(t.Strides) != len(t.Shape) {
		return fmt.Errorf("%d strides for shape %v", len(t.Strides), t.Shape)
	}
	smallest := int64(1)
	for k := len(t.Shape) - 1; k >= 0; k-- {
		if t.Strides[k] < smallest {
			return fmt.Errorf("strides %v of shape %v overlap", t.Strides, t.Shape)
		}
		if t.Shape[k] <= 0 {
			return fmt.Errorf("extent %d in shape %v", t.Shape[k], t.Shape)
		}
		if _, err := array.CheckedBytes(t.DType, []int64{t.Strides[k], t.Shape[k]}); err != nil {
			return fmt.Errorf("strides %v of shape %v: %w", t.Strides, t.Shape, err)
		}
		smallest = t.Strides[k] * t.Shape[k]
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

// joinable reports whether dimensions k and k+1 are contiguous in memory.
func (t *Tensor) joinable(k int) bool {
	return t.Strides == nil || t.Strides[k] == t.Strides[k+1]*t.Shape[k+1]
}

// joinStrides returns the strides after dimensions k and k+1 are merged.
func joinStrides(strides []int64, k int) []int64 {
	if strides == nil {
		return nil
	}
	return slices.Concat(strides[:k], strides[k+1:])
}

// keptStrides returns the strides of the dimensions that squeeze keeps; that of an extent of one is arbitrary and
// becomes one.
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
