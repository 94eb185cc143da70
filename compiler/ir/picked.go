package ir

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Picked is, in a vector loop, a value whose lanes are picked from a few vectors of contiguous elements, such as
// those of a few groups of channels, or from a few elements or 32-bit words.
type Picked struct {
	Sources
	// Picks holds for each lane the position of its element; positions in each vector follow those of the previous
	// one.
	Picks []int64
}

// Map replaces the first elements.
func (p *Picked) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	return &Picked{Sources: p.mapped(f), Picks: p.Picks}
}

// Repeats reports whether each source is broadcast to several lanes: one element, or those of a 32-bit word.
func (p *Picked) Repeats() bool {
	if p.Width == 1 {
		return true
	}
	for k, pick := range p.Picks {
		if pick%p.Width != int64(k)%p.Width {
			return false
		}
	}
	return p.Width*p.DType().Bytes() == array.Int32.Bytes() && p.Width < int64(len(p.Picks))
}

// Offsets returns an index in the first lane, and the offsets of all lanes relative to it; nil if these depend on
// the surrounding loops.
func Offsets(index expr.Expr, lane *expr.Var) (first expr.Linear, offsets []int64) {
	if coef, linear := expr.Linearize(index).Coef(lane); linear {
		for k := range lane.Extent {
			offsets = append(offsets, k*coef)
		}
		return expr.Linearize(index).Plus(expr.Linearize(lane), -coef), offsets
	}
	for k := range lane.Extent {
		at := expr.Linearize(expr.Simplifier{Values: map[*expr.Var]expr.Expr{lane: expr.I(k)}}.Simplify(index))
		if k == 0 {
			first = at
		}
		apart := at.Plus(first, -1)
		if len(apart.Terms) > 0 {
			return first, nil
		}
		offsets = append(offsets, apart.Const)
	}
	return first, offsets
}

// maxPicked is the largest number of vectors that lanes are picked from.
const maxPicked = 4

// Pick picks for each lane the element of a tensor at the given offset from the first. The sources are a repeated
// short vector, two elements or words, whose loads need no register for other steps, two vectors with as many
// elements as there are lanes, a few elements or words, or a few more vectors. It returns nil if none of these
// covers all lanes.
func Pick(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	if p := pickRun(lane, t, first, offsets); p != nil {
		return p
	}
	few := pickElements(lane, t, first, offsets)
	if few != nil && len(few.From) <= 2 {
		return few
	}
	if p := pickVectors(lane, t, first, offsets); few == nil || p != nil && len(p.From) <= 2 {
		return p
	}
	return few
}

// minRun is the length in bytes of the shortest run of elements that a load repeats.
const minRun = 16

// pickRun picks the elements of a vector shorter than the lanes repeatedly, by a broadcast load; nil if the lanes
// do not repeat.
func pickRun(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	run := repeated(offsets)
	if run*t.DType.Bytes() < minRun || run == lane.Extent {
		return nil
	}
	p := &Picked{Sources: Sources{Lane: lane, Width: run, From: []*expr.Load{t.At(first.Plus(expr.Linear{Const: offsets[0]}, 1).Expr()).(*expr.Load)}}}
	for k := range offsets {
		p.Picks = append(p.Picks, int64(k)%run)
	}
	return p
}

// repeated returns the number of neighbours, a power of two, after which the offsets repeat; 0 if they do not.
func repeated(offsets []int64) int64 {
	run := int64(1)
	for run < int64(len(offsets)) && offsets[run] == offsets[run-1]+1 {
		run++
	}
	for k, offset := range offsets {
		if run&(run-1) != 0 || offset != offsets[0]+int64(k)%run {
			return 0
		}
	}
	return run
}

// pickVectors picks lanes from vectors; nil if that takes too many.
func pickVectors(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	// Load whole blocks of the tensor, so that other steps pick from the same vectors.
	block := blockOf(first, t.Shape[0], lane.Extent)
	start, end := floor(first.Const+slices.Min(offsets), block), floor(first.Const+slices.Max(offsets), block)+block
	width, count := vectors(end-start, lane.Extent)
	if count > maxPicked {
		return nil
	}
	p := &Picked{Sources: Sources{Lane: lane, Width: width}, Picks: make([]int64, len(offsets))}
	for k := range count {
		source := first
		source.Const = min(start+k*width, end-width)
		p.From = append(p.From, t.At(source.Expr()).(*expr.Load))
	}
	for k, offset := range offsets {
		at := first.Const + offset - start
		vector := min(at/width, count-1)
		p.Picks[k] = vector*width + at - min(vector*width, end-start-width)
	}
	return p
}

// pickElements picks lanes from elements, or words if lanes have whole ones, each broadcast to at least two lanes
// or words of them on average; nil if there are too many.
func pickElements(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	width := wordOf(t.DType, offsets)
	p := &Picked{Sources: Sources{Lane: lane, Width: width}, Picks: make([]int64, len(offsets))}
	limit := min(maxPicked, int64(len(offsets))/width/2)
	var distinct []int64
	for k, offset := range offsets {
		within := int64(k) % width
		offset -= within
		at := slices.Index(distinct, offset)
		if at < 0 {
			if at = len(distinct); int64(at) == limit {
				return nil
			}
			distinct = append(distinct, offset)
			source := first
			source.Const += offset
			p.From = append(p.From, t.At(source.Expr()).(*expr.Load))
		}
		p.Picks[k] = int64(at)*width + within
	}
	return p
}

// wordOf returns the number of neighbouring elements in 32 bits, if lanes consist of such words; 1 otherwise.
func wordOf(d array.DType, offsets []int64) int64 {
	width := max(1, array.Int32.Bytes()/d.Bytes())
	for k, offset := range offsets {
		if within := int64(k) % width; offset != offsets[int64(k)-within]+within {
			return 1
		}
	}
	if int64(len(offsets))%width != 0 {
		return 1
	}
	return width
}

// blockOf returns the largest block size in elements, a power of two and at most lanes, such that an index has a
// fixed position in its block for all iterations of the surrounding loops, and the tensor ends with a whole block.
func blockOf(first expr.Linear, elements, lanes int64) int64 {
	block := int64(1)
	divides := func(n int64) bool {
		return elements%n == 0 && !slices.ContainsFunc(first.Terms, func(t expr.Term) bool { return t.Coef%n != 0 })
	}
	for 2*block <= lanes && divides(2*block) {
		block *= 2
	}
	return block
}

// vectors returns the width and number of the fewest vectors, of at most lanes each, that cover the elements. Two
// may overlap.
func vectors(elements, lanes int64) (width, count int64) {
	width = 1
	for 2*width <= min(elements, lanes) {
		width *= 2
	}
	return width, (elements + width - 1) / width
}

// floor returns n rounded down to a multiple.
func floor(n, multiple int64) int64 {
	return n - ((n%multiple)+multiple)%multiple
}

// MaxTurns is the largest number of interleaved vectors.
const MaxTurns = maxPicked

// TakeTurns interleaves vectors that are step elements apart: it picks their first elements, then their second
// ones, and so on.
func TakeTurns(lane *expr.Var, t *expr.Tensor, first expr.Linear, step, vectors int64) *Picked {
	p := &Picked{Sources: Sources{Lane: lane, Width: lane.Extent / vectors}, Picks: make([]int64, lane.Extent)}
	for k := range vectors {
		source := first
		source.Const += k * step
		p.From = append(p.From, t.At(source.Expr()).(*expr.Load))
	}
	for k := range p.Picks {
		p.Picks[k] = int64(k)%vectors*p.Width + int64(k)/vectors
	}
	return p
}

// Turns reports whether the vectors are interleaved.
func (p *Picked) Turns() bool {
	vectors := int64(len(p.From))
	for k, pick := range p.Picks {
		if pick != int64(k)%vectors*p.Width+int64(k)/vectors {
			return false
		}
	}
	return vectors > 2 && p.Width > 1 && vectors*p.Width == int64(len(p.Picks))
}
