package cost

import (
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// width is the number of threads that are sampled together: a warp.
const width = 32

// lanes holds the values of an integer expression in the threads of a warp.
type lanes = [width]int64

// sample is one point in the loops: the values of variables in the threads of one warp, and the mask of active
// threads.
type sample struct {
	vars   map[*expr.Var]*lanes
	active uint32
}

// everyLane is the mask of a fully active warp.
const everyLane uint32 = 1<<width - 1

// eval returns the value of an expression in all lanes. Loaded values are assumed to be scattered: the stride between
// lanes exceeds any vector.
func (s *sample) eval(e expr.Expr) (v lanes) {
	switch n := e.(type) {
	case *expr.Int:
		for k := range v {
			v[k] = n.Value
		}
	case *expr.Var:
		if known := s.vars[n]; known != nil {
			return *known
		}
	case *expr.Binary:
		a, b := s.eval(n.A), s.eval(n.B)
		for k := range v {
			v[k] = integer(n.Op, a[k], b[k])
		}
	case *expr.Select:
		cond, a, b := s.eval(n.Cond), s.eval(n.A), s.eval(n.B)
		for k := range v {
			if v[k] = b[k]; cond[k] != 0 {
				v[k] = a[k]
			}
		}
	case *expr.Cast:
		return s.eval(n.A)
	case *expr.Load:
		for k := range v {
			v[k] = int64(k) * scattered
		}
	}
	return v
}

// scattered is the assumed distance between values that threads load.
const scattered = 1021

// where returns the sample restricted to threads for which a condition holds.
func (s *sample) where(cond expr.Expr, holds bool) sample {
	v := s.eval(cond)
	part := sample{s.vars, 0}
	for k := range v {
		if s.active>>k&1 == 1 && (v[k] != 0) == holds {
			part.active |= 1 << k
		}
	}
	return part
}

// threads returns how many threads are active.
func (s *sample) threads() int { return bits.OnesCount32(s.active) }

// integer evaluates an operator of indices and conditions. Operators that indices do not use yield zero.
func integer(op expr.BinaryOp, a, b int64) int64 {
	switch op {
	case expr.Add:
		return a + b
	case expr.Sub:
		return a - b
	case expr.Mul:
		return a * b
	case expr.FloorDiv, expr.Div:
		return floorDiv(a, b)
	case expr.FloorMod, expr.Mod:
		return a - b*floorDiv(a, b)
	case expr.Min:
		return min(a, b)
	case expr.Max:
		return max(a, b)
	case expr.And:
		return a & b
	case expr.Or:
		return a | b
	case expr.Xor:
		return a ^ b
	case expr.Lt:
		return one(a < b)
	case expr.Le:
		return one(a <= b)
	case expr.Eq:
		return one(a == b)
	case expr.Ne:
		return one(a != b)
	}
	return 0
}

func one(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}

func floorDiv(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	if q := a / b; q*b == a || (a < 0) == (b < 0) {
		return q
	}
	return a/b - 1
}

const (
	// sectorBytes is the granularity of global memory transfers.
	sectorBytes = 32
	// banks is the number of shared memory banks, and wordBytes the width of each.
	banks, wordBytes = 32, 4
	// turnBytes is the size of the words served in one turn.
	turnBytes = banks * wordBytes
)

// sectors returns how many sectors of global memory the active threads touch, each with the given bytes from an
// element on.
func (s *sample) sectors(index *lanes, size, bytes int64) (n int) {
	var seen [width * 2]int64
	for k := range index {
		if s.active>>k&1 == 0 {
			continue
		}
		first := floorDiv(index[k]*size, sectorBytes)
		last := floorDiv(index[k]*size+bytes-1, sectorBytes)
		for at := first; at <= last && n < len(seen); at++ {
			if !contains(seen[:n], at) {
				seen[n] = at
				n++
			}
		}
	}
	return n
}

// Turns returns how many turns of the shared memory banks serve the active threads of a warp, each with the given
// bytes from an element on. Threads that request the same word share it. Each turn serves as many threads as it has
// words for.
func Turns(active uint32, index *[width]int64, size, bytes int64) (n int) {
	together := int(min(width, turnBytes/max(bytes, wordBytes)))
	for from := 0; from < width; from += together {
		var words [width]int64
		var used [banks]int
		count, largest := 0, 0
		for k := from; k < from+together; k++ {
			if active>>k&1 == 0 {
				continue
			}
			first, last := floorDiv(index[k]*size, wordBytes), floorDiv(index[k]*size+bytes-1, wordBytes)
			for at := first; at <= last; at++ {
				if count == len(words) || contains(words[:count], at) {
					continue
				}
				words[count] = at
				count++
				bank := at - banks*floorDiv(at, banks)
				used[bank]++
				largest = max(largest, used[bank])
			}
		}
		n += largest
	}
	return n
}

// contains searches from the end, since neighbours usually request the same value.
func contains(list []int64, v int64) bool {
	for k := len(list) - 1; k >= 0; k-- {
		if list[k] == v {
			return true
		}
	}
	return false
}
