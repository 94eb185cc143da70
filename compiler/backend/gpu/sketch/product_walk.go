package sketch

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
)

// Walk describes how blocks traverse the tiles of the results.
type Walk struct {
	// Each is the number of persistent blocks per multiprocessor; 0 means one tile per block.
	Each int64
	// Band is the rasterisation: the number of tiles along rows that are visited before the next one along columns; 0
	// or 1 for none.
	Band int64
	// Cut is the number of Stream-K rounds, whose sums are divided so that blocks have equal shares; 0 for none.
	Cut int64
}

// Walking returns the knobs of a walk.
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

// maxParts bounds the memory for partial sums in bytes.
const maxParts = 256 << 20

// tiles returns the number of tiles along rows and columns.
func (p *Product) tiles(b Box) (rows, columns int64) {
	return sketch.CeilDiv(p.Extents[p.Rows], b.Rows), sketch.CeilDiv(p.Extents[p.Columns], b.Columns)
}

// Legal returns an error if blocks cannot walk this way. resident is the number of blocks per multiprocessor.
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

// Reconciled returns a walk that is legal for the tiles.
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

// blocks returns the number of persistent blocks.
func (w Walk) blocks(p *Product) int64 { return w.Each * int64(p.GPU.Multiprocessors) }

// whole returns the number of data-parallel rounds, whose sums are not divided.
func (w Walk) whole(p *Product, b Box) int64 {
	return max(0, p.Blocks(b)/w.blocks(p)-(w.Cut-1))
}

// cutSteps returns the number of steps of the tiles whose sums may be divided.
func (w Walk) cutSteps(p *Product, b Box) int64 {
	steps, _ := p.Steps(b)
	return (p.Blocks(b) - w.whole(p, b)*w.blocks(p)) * steps
}

// Tiles orders the loops over tiles for fusion. For bands, those along rows and columns come last.
func (w Walk) Tiles(all []int, rows, columns int) []int {
	if w.Band < 2 {
		return all
	}
	others := slices.DeleteFunc(slices.Clone(all), func(it int) bool { return it == rows || it == columns })
	return append(others, rows, columns)
}

// Walk makes the bound blocks of the results persistent.
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

// continues reports whether the last steps of a tile prefetch for the first ones of a block's next tile. It requires
// that all tiles have the same code and more than one step.
func (p *Product) continues(b Box, stages int64) bool {
	steps, _ := p.Steps(b)
	whole := b.Guarded || p.Extents[p.Rows]%b.Rows == 0 && p.Extents[p.Columns]%b.Columns == 0
	return stages > 1 && steps > 1 && whole && p.Terms(b)%b.Depth == 0
}

// Launch describes how the tiles of a launch occupy the GPU.
type Launch struct {
	// Together is the number of concurrent blocks per multiprocessor.
	Together float64
	// Rounds is the number of tiles that each resident block slot computes in sequence, Begun the number of pipeline
	// starts.
	Rounds, Begun float64
	// After is the cycles of adding up partial sums at the end.
	After float64
}

// Launch returns the launch of persistent blocks. resident is the number of blocks per multiprocessor, stages the
// depth of the pipeline.
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
	// All blocks store partial tiles. A block per divided tile adds them up.
	tile := float64(b.Rows * b.Columns * p.Bytes)
	parts := float64(blocks + rest)
	adding := float64(sketch.CeilDiv(rest, processors)) * tile * parts / float64(rest)
	l.After = machine.Launch + tile*parts/machine.GlobalBytes/float64(processors) + adding/machine.OneReads + machine.Latency
	return l
}
