package roofline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Rates are the peak rates of all threads of a machine together.
type Rates struct {
	// FlopPerSecond counts float32 fused multiply-adds, two operations each.
	FlopPerSecond float64 `json:"flop_per_second"`
	// Stores lists the distinct caches and the memory, fastest first.
	Stores []Store `json:"stores"`
}

// Store is a level of the memory hierarchy.
type Store struct {
	Name           string  `json:"name"`
	Bytes          int64   `json:"bytes"` // capacity for all threads together
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// MemoryBytes is the capacity of the last store: far above any cache.
const MemoryBytes = 1 << 40

// Max returns the higher of each pair of rates. Rates of other stores are ignored.
func (r Rates) Max(o Rates) Rates {
	r.FlopPerSecond = max(r.FlopPerSecond, o.FlopPerSecond)
	r.Stores = slices.Clone(r.Stores)
	for i, s := range r.Stores {
		for _, other := range o.Stores {
			if s.Name == other.Name && s.Bytes == other.Bytes {
				r.Stores[i].BytesPerSecond = max(s.BytesPerSecond, other.BytesPerSecond)
			}
		}
	}
	return r
}

// Encode returns the rates as JSON, for Decode.
func (r Rates) Encode() []byte {
	text, err := json.Marshal(r)
	if err != nil { // a rate that is NaN or infinite, which no machine has
		return nil
	}
	return text
}

// Decode decodes and checks rates in JSON.
func Decode(text []byte) (r Rates, err error) {
	if err := json.Unmarshal(text, &r); err != nil {
		return Rates{}, fmt.Errorf("rates of a machine: %w", err)
	}
	if err := r.Check(); err != nil {
		return Rates{}, fmt.Errorf("rates of a machine: %w", err)
	}
	return r, nil
}

// Check returns an error if the rates are invalid.
func (r Rates) Check() error {
	if !positive(r.FlopPerSecond) {
		return fmt.Errorf("%v FLOP/s is not a rate", r.FlopPerSecond)
	}
	if len(r.Stores) == 0 {
		return errors.New("the rates of memory are missing")
	}
	for _, s := range r.Stores {
		if !positive(s.BytesPerSecond) || s.Bytes < 0 {
			return fmt.Errorf("%s: %d bytes at %v bytes/s", s.Name, s.Bytes, s.BytesPerSecond)
		}
	}
	return nil
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// String returns the rates as a readable line.
func (r Rates) String() string {
	parts := []string{fmt.Sprintf("%.0f GFLOP/s", r.FlopPerSecond/1e9)}
	for _, s := range r.Stores {
		parts = append(parts, fmt.Sprintf("%s %.0f GB/s", s.Name, s.BytesPerSecond/1e9))
	}
	return strings.Join(parts, ", ")
}

// Limits returns the least seconds for a workload with the given floating-point operations: for the operations,
// with direct sums, and for reading and writing each argument once. Constants come from memory, where the harness
// puts them before each sample and where they are in a model; inputs and outputs lie in the fastest store, and the
// excess in the next. The rates must pass Check.
func (r Rates) Limits(w *expr.Workload, flop float64) (arithmetic, bytes float64) {
	constants, others := Bytes(w)
	others = int64(float64(others) * share(w))
	bytes = float64(constants) / r.Stores[len(r.Stores)-1].BytesPerSecond
	for _, s := range r.Stores {
		part := min(others, s.Bytes)
		others -= part
		bytes += float64(part) / s.BytesPerSecond
	}
	return flop / r.FlopPerSecond, bytes
}

// Measured rates bound latencies loosely: a machine may have been busy when it was measured, and matrix units multiply
// narrow numbers, and any on a GPU, many times as fast as the float32 multiply-adds that were.
const (
	maxOverRate   = 8
	maxOverScalar = 64 // with matrix units
)

// Least returns the latency below which no measurement of a workload is believed, if it executes all multiplications
// and its outputs are written once. onCPU excludes matrix units of float32.
func (r Rates) Least(w *expr.Workload, flop float64, onCPU bool) float64 {
	over, written := float64(maxOverRate), int64(0)
	for _, t := range slices.Concat(w.Inputs, w.Constants, w.Outputs) {
		if !onCPU || t.DType.Bytes() < array.Float32.Bytes() {
			over = maxOverScalar
		}
	}
	for _, t := range w.Outputs {
		written += array.Elements(t.Shape) * t.DType.Bytes()
	}
	return max(flop/r.FlopPerSecond/over, share(w)*float64(written)/r.Stores[0].BytesPerSecond/maxOverRate)
}

// share returns the part of an open workload's data that the executions access with which kernels are timed.
func share(w *expr.Workload) float64 {
	if !w.IsOpen() {
		return 1
	}
	return min(1, float64(w.Mean().Bytes)/float64(max(w.Bytes(), 1)))
}

// Bytes returns the size of a workload's constants, and of its inputs and outputs.
func Bytes(w *expr.Workload) (constants, others int64) {
	size := func(list []*expr.Tensor) (total int64) {
		for _, t := range list {
			total += array.Elements(t.Shape) * t.DType.Bytes()
		}
		return total
	}
	return size(w.Constants), size(w.Inputs) + size(w.Outputs)
}
