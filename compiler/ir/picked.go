package ir

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Picked is, in a vector loop, a value whose lanes are picked from a few vectors of elements that lie side by side, as
// those of a few groups of channels, or from a few elements or words of 32 bits.
type Picked struct {
	Sources
	// Picks has for each lane the place of its element: those of each vector come behind those of the one before.
	Picks []int64
}

// Map replaces first elements by others.
func (p *Picked) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	return &Picked{Sources: p.mapped(f), Picks: p.Picks}
}

// Repeats reports whether each source goes to several lanes as it is: one element, or those of a word of 32 bits.
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

// Offsets is an index in the first lane, and how far from it the lanes' indices are; nil where that is not the same
// whatever the loops around do.
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

// mostPicked is the most vectors that lanes are picked from.
const mostPicked = 4

// Pick picks for each lane the element of a tensor that lies so far behind the first: from a short vector that is
// repeated, from two elements or words, whose loads need no register for what other steps pick, from two vectors of as
// many elements as there are lanes, from as few elements or words as they are, or from a few more vectors; nil where
// those do not have them all.
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

// leastRun is the bytes of the shortest run of elements that a load repeats.
const leastRun = 16

// pickRun picks the elements of a vector shorter than that of the lanes over and over, which loads do by themselves;
// nil where the lanes are others.
func pickRun(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	run := repeated(offsets)
	if run*t.DType.Bytes() < leastRun || run == lane.Extent {
		return nil
	}
	p := &Picked{Sources: Sources{Lane: lane, Width: run, From: []*expr.Load{t.At(first.Plus(expr.Linear{Const: offsets[0]}, 1).Expr()).(*expr.Load)}}}
	for k := range offsets {
		p.Picks = append(p.Picks, int64(k)%run)
	}
	return p
}

// repeated is how many neighbours, a power of two, the offsets repeat; 0 where they do not.
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

// pickVectors picks lanes from vectors; nil where that takes too many.
func pickVectors(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	// Whole blocks of the tensor are loaded, so that what other steps pick from a block is in the same vectors.
	block := blockOf(first, t.Shape[0], lane.Extent)
	start, end := floor(first.Const+slices.Min(offsets), block), floor(first.Const+slices.Max(offsets), block)+block
	width, count := vectors(end-start, lane.Extent)
	if count > mostPicked {
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

// pickElements picks lanes from elements, or words where lanes have whole ones, each of which goes to two lanes or
// words of them on average; nil where there are too many.
func pickElements(lane *expr.Var, t *expr.Tensor, first expr.Linear, offsets []int64) *Picked {
	width := wordOf(t.DType, offsets)
	p := &Picked{Sources: Sources{Lane: lane, Width: width}, Picks: make([]int64, len(offsets))}
	most := min(mostPicked, int64(len(offsets))/width/2)
	var distinct []int64
	for k, offset := range offsets {
		within := int64(k) % width
		offset -= within
		at := slices.Index(distinct, offset)
		if at < 0 {
			if at = len(distinct); int64(at) == most {
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

// wordOf is how many neighbouring elements make 32 bits, if lanes have such words one after the other; 1 where not.
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

// blockOf is how many elements, a power of two and at most the lanes, make blocks that an index begins at the same
// place of, whatever the loops around do, and that a tensor ends at the end of.
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

// vectors is how wide the fewest vectors are that have so many neighbours, at most lanes each. Two may overlap.
func vectors(elements, lanes int64) (width, count int64) {
	width = 1
	for 2*width <= min(elements, lanes) {
		width *= 2
	}
	return width, (elements + width - 1) / width
}

// floor is n rounded down to a multiple.
func floor(n, multiple int64) int64 {
	return n - ((n%multiple)+multiple)%multiple
}

// MostTurns is the most vectors that take turns.
const MostTurns = mostPicked

// TakeTurns picks the first elements of so many vectors, which lie step elements apart, then their second ones, and so
// on.
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

// Turns reports whether the vectors take turns.
func (p *Picked) Turns() bool {
	vectors := int64(len(p.From))
	for k, pick := range p.Picks {
		if pick != int64(k)%vectors*p.Width+int64(k)/vectors {
			return false
		}
	}
	return vectors > 2 && p.Width > 1 && vectors*p.Width == int64(len(p.Picks))
}
