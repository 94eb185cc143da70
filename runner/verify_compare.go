// This file compares the outputs of kernels with those of the reference. The outputs are in memory shared with the
// kernels' process, while the reference runs in a different process.

package runner

import (
	"bytes"
	"encoding/binary"
	"math"
	"unsafe"
)

// Data types, as in compiler/backend/cpu/cruntime.
const (
	float32Type  = 1
	float64Type  = 2
	float16Type  = 3
	bfloat16Type = 4
	int8Type     = 5
	int16Type    = 6
	int32Type    = 7
	int64Type    = 8
	uint8Type    = 9
	uint16Type   = 10
	uint32Type   = 11
	uint64Type   = 12
)

// difference is the largest difference between two tensors.
type difference struct {
	// relative to the largest |want|; infinite if only one of two elements is NaN or infinite, or if integers differ.
	relative float64
	// at is the index of an element with that difference, and got and want its values; set only if it exceeds
	// the tolerance.
	at        int64
	got, want float64
	// largest is the largest finite |want|, set if elements were compared one by one.
	largest float64
}

// isRounded reports whether integers of a type may result from rounding floats, unlike indices and conditions.
func isRounded(dtype int32) bool {
	return dtype < int64Type || dtype == uint8Type || dtype == uint16Type
}

// poison fills the gaps between elements on both sides.
const poison = 0xFFFFFFFF

// compare compares floats.
func compare(got, want []byte, dtype int32, tolerance float64) difference {
	if dtype == float32Type {
		if relative, ok := scan(float32s(got), float32s(want)); ok && relative <= tolerance {
			return difference{relative: relative}
		}
	}
	return compareSlowly(got, want, dtype)
}

func compareExactly(got, want []byte, dtype int32) difference {
	if bytes.Equal(got, want) {
		return difference{}
	}
	size := elementBytes[dtype]
	for i := range int64(len(want)) / size {
		if !bytes.Equal(got[i*size:(i+1)*size], want[i*size:(i+1)*size]) {
			return difference{relative: math.Inf(1), at: i, got: value(got, i, dtype), want: value(want, i, dtype)}
		}
	}
	return difference{} // they became equal meanwhile
}

// float32s returns the bits of elements. Slots are aligned.
func float32s(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

const infinity = 0x7F800000

// scan is the fast path for finite values, whose magnitudes sort like their bits. ok is false if a value is
// not finite, or if want is all zeros.
func scan(got, want []uint32) (relative float64, ok bool) {
	var worst, largest uint32
	got = got[:len(want)]
	for i, w := range want {
		g := got[i]
		if g == w && w == poison {
			continue
		}
		worst = max(worst, math.Float32bits(math.Float32frombits(g)-math.Float32frombits(w))&^(1<<31))
		largest = max(largest, w&^(1<<31))
	}
	if worst >= infinity || largest >= infinity || largest == 0 {
		return 0, false
	}
	return float64(math.Float32frombits(worst)) / float64(math.Float32frombits(largest)), true
}

func finite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }

func compareSlowly(got, want []byte, dtype int32) difference {
	largest, worst := 0.0, difference{relative: -1}
	for i := range int64(len(want)) / elementBytes[dtype] {
		a, b := value(got, i, dtype), value(want, i, dtype)
		if finite(b) {
			largest = max(largest, math.Abs(b))
		}
		switch {
		case a == b || math.IsNaN(a) && math.IsNaN(b):
		case !finite(a) || !finite(b):
			return difference{relative: math.Inf(1), at: i, got: a, want: b}
		case math.Abs(a-b) > worst.relative:
			worst = difference{relative: math.Abs(a - b), at: i, got: a, want: b}
		}
	}
	worst.largest = largest
	switch {
	case worst.relative < 0:
		return difference{}
	case largest == 0:
		worst.relative = math.Inf(1)
	default:
		worst.relative /= largest
	}
	return worst
}

// value returns an element as exactly as a float64 can represent it.
func value(data []byte, i int64, dtype int32) float64 {
	data = data[i*elementBytes[dtype]:]
	order := binary.NativeEndian
	switch dtype {
	case float32Type:
		return float64(math.Float32frombits(order.Uint32(data)))
	case float64Type:
		return math.Float64frombits(order.Uint64(data))
	case float16Type:
		return fromFloat16(order.Uint16(data))
	case bfloat16Type:
		return float64(math.Float32frombits(uint32(order.Uint16(data)) << 16))
	case int8Type:
		return float64(int8(data[0]))
	case int16Type:
		return float64(int16(order.Uint16(data)))
	case int32Type:
		return float64(int32(order.Uint32(data)))
	case int64Type:
		return float64(int64(order.Uint64(data)))
	case uint16Type:
		return float64(order.Uint16(data))
	case uint32Type:
		return float64(order.Uint32(data))
	case uint64Type:
		return float64(order.Uint64(data))
	default: // uint8, bool
		return float64(data[0])
	}
}

func fromFloat16(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction > 0:
		v = math.NaN()
	case exponent == 31:
		v = math.Inf(1)
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}
