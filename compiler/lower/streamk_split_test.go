package lower

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"pgregory.net/rapid"
)

// indices evaluates expressions in the 32 bits that kernels count in.
type indices struct {
	*rapid.T
	values map[*expr.Var]int64
}

func (x indices) value(e expr.Expr) int64 {
	v := x.any(e)
	if v < math.MinInt32 || v > math.MaxInt32 {
		x.Fatalf("%v is %d, which 32 bits do not hold", e, v)
	}
	return v
}

func (x indices) any(e expr.Expr) int64 {
	switch n := e.(type) {
	case *expr.Int:
		return n.Value
	case *expr.Var:
		return x.values[n]
	case *expr.Select:
		if x.value(n.Cond) != 0 {
			return x.value(n.A)
		}
		return x.value(n.B)
	case *expr.Binary:
		return x.binary(n.Op, x.value(n.A), x.value(n.B))
	}
	x.Fatalf("%T among indices", e)
	return 0
}

func (x indices) binary(op expr.BinaryOp, a, b int64) int64 {
	switch op {
	case expr.Add:
		return a + b
	case expr.Sub:
		return a - b
	case expr.Mul:
		return a * b
	case expr.FloorDiv:
		return expr.FloorDivInt(a, b)
	case expr.FloorMod:
		return a - b*expr.FloorDivInt(a, b)
	case expr.Min:
		return min(a, b)
	case expr.Max:
		return max(a, b)
	case expr.Lt:
		return map[bool]int64{true: 1}[a < b]
	}
	x.Fatalf("operator %d among indices", op)
	return 0
}

// names evaluates what is named.
func (x indices) names(lets ir.Block) {
	for _, st := range lets {
		let := st.(*ir.Let)
		v := x.value(let.Value)
		if v < 0 || v >= let.Var.Extent {
			x.Fatalf("%s is %d, not below %d", let.Var.Name, v, let.Var.Extent)
		}
		x.values[let.Var] = v
	}
}

// TestStreamKSharesCoverAllSteps: the pieces of all blocks are each step of each tile once, and what is said of their
// number is so.
func TestStreamKSharesCoverAllSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string, limit int64) int64 { return rapid.Int64Range(1, limit).Draw(t, name) }
		by := schedule.Distribution{StreamKRounds: small("rounds", 4)}
		tiles, steps := small("tiles", 40), small("steps", 12)
		by.PersistentBlocks = small("blocks", 30)
		s, err := newStreamK(&schedule.Stage{}, tiles, steps, by)
		if err != nil {
			t.Skip(err)
		}
		block, round := &expr.Var{Name: "block"}, &expr.Var{Name: "round"}
		tile, lo, hi, lets := s.piece(block, round)
		x := indices{t, map[*expr.Var]int64{}}
		walk, done, parts := s.walk(block), map[[2]int64]int64{}, map[int64]int64{}
		pieces, largest := int64(0), int64(0)
		for b := range s.blocks {
			x.values[block] = b
			end := x.value(walk.End)
			pieces, largest = pieces+end-s.wholeRounds, max(largest, end-s.wholeRounds)
			for r := range end {
				x.values[round] = r
				x.names(lets)
				parts[x.values[tile]]++
				for k := x.values[lo]; k < x.values[hi]; k++ {
					done[[2]int64{x.values[tile], k}]++
					if step := (x.values[tile]-s.wholeTiles)*s.steps + k; step >= 0 && x.value(s.blockOfStep(expr.I(step))) != b {
						t.Fatalf("step %d is not said to be one of block %d", step, b)
					}
				}
			}
		}
		for step, times := range done {
			if times != 1 {
				t.Fatalf("step %d of tile %d is computed %d times", step[1], step[0], times)
			}
		}
		cut, all := 0, int64(0)
		for _, n := range parts {
			if n > 1 {
				cut, all = cut+1, all+n
			}
		}
		if int64(len(done)) != s.tiles*s.steps || s.pieces != pieces || s.maxPieces != largest || s.parts != float64(all)/float64(max(1, cut)) {
			t.Fatalf("%d of %d steps; %+v, of %d pieces, %d at most, %d parts of %d tiles", len(done), s.tiles*s.steps, *s, pieces, largest, all, cut)
		}
	})
}

// TestStreamKSharesFit32Bits: whatever is not refused is counted without an overflow.
func TestStreamKSharesFit32Bits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// As many steps as can be counted, or twice as many, of which most are refused.
		steps := int64(1) << rapid.IntRange(1, 30).Draw(t, "log steps")
		steps += rapid.Int64Range(0, steps-1).Draw(t, "steps")
		tiles := rapid.Int64Range(1, 2*maxCount/steps).Draw(t, "tiles")
		by := schedule.Distribution{StreamKRounds: rapid.Int64Range(1, 64).Draw(t, "rounds"), PersistentBlocks: rapid.Int64Range(1, 1<<16).Draw(t, "blocks")}
		s, err := newStreamK(&schedule.Stage{}, tiles, steps, by)
		if err != nil {
			t.Skip(err)
		}
		block, round := &expr.Var{Name: "block"}, &expr.Var{Name: "round"}
		_, lo, hi, lets := s.piece(block, round)
		x := indices{t, map[*expr.Var]int64{}}
		walk := s.walk(block)
		for _, b := range []int64{0, rapid.Int64Range(0, s.blocks-1).Draw(t, "block"), s.blocks - 1} {
			x.values[block] = b
			end := x.value(walk.End)
			for _, r := range []int64{0, rapid.Int64Range(0, end-1).Draw(t, "round"), end - 1} {
				x.values[round] = r
				x.names(lets)
				if x.values[lo] >= x.values[hi] {
					t.Fatalf("block %d has no step in round %d", b, r)
				}
			}
		}
		cut := expr.I(rapid.Int64Range(0, s.tiles-s.wholeTiles-1).Draw(t, "cut"))
		for _, k := range []int64{0, s.steps - 1} {
			x.value(s.blockOfStep(expr.AddE(expr.MulE(cut, expr.I(s.steps)), expr.I(k))))
		}
	})
}
