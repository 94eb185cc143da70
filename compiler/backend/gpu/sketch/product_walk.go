package sketch

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
)

// Walk is how blocks take the tiles of the results.
type Walk struct {
	// Each is how many blocks of a multiprocessor walk over several tiles; 0 = each block has one.
	Each int64
	// Band is how many tiles along rows take turns before the next one along columns; 0 or 1 = none.
	Band int64
	// Cut is in how many rounds sums are cut so that blocks have equal shares; 0 = in none.
	Cut int64
}

// Walking are the knobs of a walk.
func Walking[P any](p *Product, b Box, field func(*P) *Walk) []space.Parameter[P] {
	knob := func(name string, number func(*Walk) *int64, values ...int64) space.Parameter[P] {
		return sketch.Knob(name, func(q *P) *int64 { return number(field(q)) }, values...)
	}
	rows, columns := p.tiles(b)
	bands := []int64{1}
	if rows > 1 && columns > 1 {
		bands = sketch.Below(rows, 1, 4, 8, 16)
	}
	return []space.Parameter[P]{
		knob("walkers", func(w *Walk) *int64 { return &w.Each }, 0, 1, 2, 4),
		knob("band", func(w *Walk) *int64 { return &w.Band }, bands...),
		knob("cut", func(w *Walk) *int64 { return &w.Cut }, 0, 1, 2),
	}
}

// maxParts bounds the memory for parts of sums, in bytes.
const maxParts = 256 << 20

// tiles is how many there are along rows and columns.
func (p *Product) tiles(b Box) (rows, columns int64) {
	return sketch.CeilDiv(p.Extents[p.Rows], b.Rows), sketch.CeilDiv(p.Extents[p.Columns], b.Columns)
}

// Legal says why blocks cannot walk so, of which a multiprocessor holds so many.
func (w Walk) Legal(p *Product, b Box, resident int64) error {
	tiles, blocks := p.Blocks(b), w.blocks(p)
	steps, _ := p.Steps(b)
	rows, columns := p.tiles(b)
	switch {
	case w.Band > 1 && (w.Band >= rows || columns < 2):
		return fmt.Errorf("space: %d by %d tiles are no bands of %d", rows, columns, w.Band)
	case w.Each > resident:
		return fmt.Errorf("space: a multiprocessor holds %d blocks, not %d", resident, w.Each)
	case w.Each > 0 && w.Cut == 0 && tiles <= blocks:
		return fmt.Errorf("space: %d blocks have no more than one of %d tiles each", blocks, tiles)
	case w.Cut == 0:
		return nil
	case w.Each == 0 || b.Parts > 1:
		return fmt.Errorf("space: sums are cut where blocks walk over tiles of whole sums")
	case tiles%blocks == 0 || p.Terms(b)%b.Depth != 0 || steps < 2:
		return fmt.Errorf("space: %d tiles of %d blocks have nothing to cut", tiles, blocks)
	case (blocks+w.cutSteps(p, b)/steps)*b.Rows*b.Columns*p.Bytes > maxParts:
		return fmt.Errorf("space: parts of the sums of %d blocks take more than %d bytes", blocks, maxParts)
	case w.cutSteps(p, b) < blocks:
		return fmt.Errorf("space: %d blocks have not a step each", blocks)
	}
	return nil
}

// Reconciled is a walk that is legal, as far as the tiles are concerned.
func (w Walk) Reconciled(p *Product, b Box, resident int64) Walk {
	if rows, columns := p.tiles(b); w.Band < 1 || w.Band >= rows || columns < 2 {
		w.Band = 1
	}
	for w.Each > resident {
		w.Each /= 2
	}
	if w.Each == 0 {
		w.Cut = 0
	}
	if w.Cut > 0 && w.Legal(p, b, resident) != nil {
		w.Cut = 0
	}
	if w.Cut == 0 && p.Blocks(b) <= w.blocks(p) {
		w.Each = 0
	}
	return w
}

// blocks is how many walk.
func (w Walk) blocks(p *Product) int64 { return w.Each * int64(p.GPU.Multiprocessors) }

// whole is how many rounds are without cuts.
func (w Walk) whole(p *Product, b Box) int64 {
	return max(0, p.Blocks(b)/w.blocks(p)-(w.Cut-1))
}

// cutSteps is how many steps the tiles have whose sums may be cut.
func (w Walk) cutSteps(p *Product, b Box) int64 {
	steps, _ := p.Steps(b)
	return (p.Blocks(b) - w.whole(p, b)*w.blocks(p)) * steps
}

// Tiles puts the loops over tiles, of which one is along rows and one along columns, into the order in which they are
// to be fused: for bands these two come last.
func (w Walk) Tiles(all []int, rows, columns int) []int {
	if w.Band < 2 {
		return all
	}
	others := slices.DeleteFunc(slices.Clone(all), func(it int) bool { return it == rows || it == columns })
	return append(others, rows, columns)
}

// Walk has the blocks of the results, which are bound, walk over tiles.
func (p *Product) Walk(b *sketch.Builder, w Walk) {
	if w.Each > 0 && b.Err == nil {
		b.Do(b.S.Persist(p.Unit.Out, w.blocks(p)))
	}
	if w.Band > 1 && b.Err == nil {
		b.Do(b.S.Raster(p.Unit.Out, w.Band))
	}
	if w.Cut > 0 && b.Err == nil {
		b.Do(b.S.StreamK(p.Unit.Acc, w.Cut))
	}
}

// continues reports whether the last steps of a tile fetch for the first ones of the next tile of a block: where all
// tiles have the same code, in more than one step.
func (p *Product) continues(b Box, stages int64) bool {
	steps, _ := p.Steps(b)
	whole := b.Guarded || p.Extents[p.Rows]%b.Rows == 0 && p.Extents[p.Columns]%b.Columns == 0
	return stages > 1 && steps > 1 && whole && p.Terms(b)%b.Depth == 0
}

// Launch is how the tiles of a launch lie on the card.
type Launch struct {
	// Together is how many blocks a multiprocessor computes at a time.
	Together float64
	// Rounds is how many tiles a block's place computes one after another, Begun how many it begins to compute.
	Rounds, Begun float64
	// After is the cycles behind it, until parts of sums are added up.
	After float64
}

// Launch is that of blocks that walk, of which a multiprocessor holds so many, and that fetch for so many steps at a
// time.
func (p *Product) Launch(w Walk, b Box, stages, resident int64) Launch {
	tiles, processors := p.Blocks(b), int64(p.GPU.Multiprocessors)
	if w.Each > 0 {
		resident = w.Each
	}
	l := Launch{Together: float64(min(resident, sketch.CeilDiv(tiles, processors)))}
	l.Rounds = float64(sketch.CeilDiv(tiles, resident*processors))
	l.Begun = l.Rounds
	if w.Cut == 0 {
		if w.Each > 0 && p.continues(b, stages) {
			l.Begun = 1
		}
		return l
	}
	blocks := w.blocks(p)
	steps, _ := p.Steps(b)
	whole := w.whole(p, b)
	rest := tiles - whole*blocks
	l.Together = float64(resident)
	l.Rounds = float64(whole) + float64(sketch.CeilDiv(rest*steps, blocks))/float64(steps)
	l.Begun = math.Ceil(l.Rounds) + 1
	// All blocks leave parts of tiles; to add them up, each tile whose sums are cut has a block.
	tile := float64(b.Rows * b.Columns * p.Bytes)
	parts := float64(blocks + rest)
	adding := float64(sketch.CeilDiv(rest, processors)) * tile * parts / float64(rest)
	l.After = machine.Launch + tile*parts/machine.GlobalBytes/float64(processors) + adding/machine.OneReads + machine.Latency
	return l
}
