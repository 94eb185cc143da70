package sketch

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// TileScheduler assigns the tiles of the results to blocks.
type TileScheduler struct {
	// PersistentBlocks is the number of persistent blocks per multiprocessor; 0 means one tile per block.
	PersistentBlocks int64
	// RasterWidth is the number of tiles along rows that are visited before the next one along columns; 0 or 1 for
	// row-major order.
	RasterWidth int64
	// StreamKRounds is the number of rounds whose sums are divided so that blocks have equal shares; 0 for none.
	StreamKRounds int64
}

// TileSchedulerKnobs returns the knobs of a tile scheduler.
func TileSchedulerKnobs[P any](p *Product, b Box, field func(*P) *TileScheduler) []searchspace.Parameter[P] {
	knob := func(name string, number func(*TileScheduler) *int64, values ...int64) searchspace.Parameter[P] {
		return sketch.Knob(name, func(q *P) *int64 { return number(field(q)) }, values...)
	}
	rows, columns := p.tiles(b)
	bands := []int64{1}
	if rows > 1 && columns > 1 {
		bands = sketch.Below(rows, 1, 4, 8, 16)
	}
	return []searchspace.Parameter[P]{
		knob("walkers", func(s *TileScheduler) *int64 { return &s.PersistentBlocks }, 0, 1, 2, 4),
		knob("band", func(s *TileScheduler) *int64 { return &s.RasterWidth }, bands...),
		knob("cut", func(s *TileScheduler) *int64 { return &s.StreamKRounds }, 0, 1, 2),
	}
}

// maxParts bounds the memory for partial sums in bytes.
const maxParts = 256 << 20

// tiles returns the number of tiles along rows and columns.
func (p *Product) tiles(b Box) (rows, columns int64) {
	return sketch.CeilDiv(p.Extents[p.Rows], b.Rows), sketch.CeilDiv(p.Extents[p.Columns], b.Columns)
}

// Legal returns an error if the scheduler does not suit the tiles. resident is the number of blocks per
// multiprocessor.
func (s TileScheduler) Legal(p *Product, b Box, resident int64) error {
	tiles, blocks := p.Blocks(b), s.blocks(p)
	steps, _ := p.Steps(b)
	rows, columns := p.tiles(b)
	switch {
	case s.RasterWidth > 1 && (s.RasterWidth >= rows || columns < 2):
		return fmt.Errorf("space: %d by %d tiles cannot form bands of %d", rows, columns, s.RasterWidth)
	case s.PersistentBlocks > resident:
		return fmt.Errorf("space: a multiprocessor holds %d blocks, not %d", resident, s.PersistentBlocks)
	case s.PersistentBlocks > 0 && s.StreamKRounds == 0 && tiles <= blocks:
		return fmt.Errorf("space: %d persistent blocks have at most one of %d tiles each", blocks, tiles)
	case s.StreamKRounds == 0:
		return nil
	case s.PersistentBlocks == 0 || b.Parts > 1:
		return fmt.Errorf("space: Stream-K requires persistent blocks and undivided sums")
	case tiles%blocks == 0 || p.Terms(b)%b.Depth != 0 || steps < 2:
		return fmt.Errorf("space: %d tiles on %d blocks leave nothing for Stream-K to split", tiles, blocks)
	case (blocks+s.streamKSteps(p, b)/steps)*b.Rows*b.Columns*p.Bytes > maxParts:
		return fmt.Errorf("space: parts of the sums of %d blocks take more than %d bytes", blocks, maxParts)
	case s.streamKSteps(p, b) < blocks:
		return fmt.Errorf("space: Stream-K leaves some of %d blocks without a step", blocks)
	}
	return nil
}

// Reconciled returns a scheduler that is legal for the tiles.
func (s TileScheduler) Reconciled(p *Product, b Box, resident int64) TileScheduler {
	if rows, columns := p.tiles(b); s.RasterWidth < 1 || s.RasterWidth >= rows || columns < 2 {
		s.RasterWidth = 1
	}
	for s.PersistentBlocks > resident {
		s.PersistentBlocks /= 2
	}
	if s.PersistentBlocks == 0 {
		s.StreamKRounds = 0
	}
	if s.StreamKRounds > 0 && s.Legal(p, b, resident) != nil {
		s.StreamKRounds = 0
	}
	if s.StreamKRounds == 0 && p.Blocks(b) <= s.blocks(p) {
		s.PersistentBlocks = 0
	}
	return s
}

// blocks returns the number of persistent blocks.
func (s TileScheduler) blocks(p *Product) int64 {
	return s.PersistentBlocks * int64(p.GPU.Multiprocessors)
}

// wholeRounds returns the number of data-parallel rounds, whose sums are not divided.
func (s TileScheduler) wholeRounds(p *Product, b Box) int64 {
	return max(0, p.Blocks(b)/s.blocks(p)-(s.StreamKRounds-1))
}

// streamKSteps returns the number of steps of the tiles whose sums may be divided.
func (s TileScheduler) streamKSteps(p *Product, b Box) int64 {
	steps, _ := p.Steps(b)
	return (p.Blocks(b) - s.wholeRounds(p, b)*s.blocks(p)) * steps
}

// LoopOrder orders the loops over tiles for fusion. With rasterisation, those along rows and columns come last.
func (s TileScheduler) LoopOrder(all []int, rows, columns int) []int {
	if s.RasterWidth < 2 {
		return all
	}
	others := slices.DeleteFunc(slices.Clone(all), func(it int) bool { return it == rows || it == columns })
	return append(others, rows, columns)
}

// Persist applies the scheduler to the bound blocks of the results.
func (p *Product) Persist(b *sketch.Builder, s TileScheduler) {
	if s.PersistentBlocks > 0 {
		b.Do(b.S.Persist(p.Unit.Out, s.blocks(p)))
	}
	if s.RasterWidth > 1 {
		b.Do(b.S.Raster(p.Unit.Out, s.RasterWidth))
	}
	if s.StreamKRounds > 0 {
		b.Do(b.S.StreamK(p.Unit.Acc, s.StreamKRounds))
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
	// Concurrent is the number of concurrent blocks per multiprocessor.
	Concurrent float64
	// Waves is the number of tiles that each resident block slot computes in sequence, PipelineFills the number of
	// times that the pipeline fills.
	Waves, PipelineFills float64
	// FixUp is the cycles of adding up partial sums at the end.
	FixUp float64
}

// Cycles returns the cycles of a launch whose steps take work of a multiprocessor's units, and wait in addition if a
// block is on its own.
func (p *Product) Cycles(l Launch, b Box, work, wait float64) float64 {
	steps, _ := p.Steps(b)
	return l.Waves*float64(steps)*max(work*l.Concurrent, work+wait) + l.PipelineFills*cost.Latency + l.FixUp + p.addUpCost(b.Parts)
}

// Launch returns the launch of persistent blocks. resident is the number of blocks per multiprocessor, stages the
// depth of the pipeline.
func (p *Product) Launch(s TileScheduler, b Box, stages, resident int64) Launch {
	tiles, processors := p.Blocks(b), int64(p.GPU.Multiprocessors)
	if s.PersistentBlocks > 0 {
		resident = s.PersistentBlocks
	}
	var l Launch
	l.Concurrent, l.Waves = cost.Occupy(p.GPU, tiles, resident)
	l.PipelineFills = l.Waves
	if s.StreamKRounds == 0 {
		if s.PersistentBlocks > 0 && p.continues(b, stages) {
			l.PipelineFills = 1
		}
		return l
	}
	blocks := s.blocks(p)
	steps, _ := p.Steps(b)
	whole := s.wholeRounds(p, b)
	rest := tiles - whole*blocks
	l.Concurrent = float64(resident)
	l.Waves = float64(whole) + float64(sketch.CeilDiv(rest*steps, blocks))/float64(steps)
	l.PipelineFills = math.Ceil(l.Waves) + 1
	// All blocks store partial tiles. A block per divided tile adds them up.
	tile := float64(b.Rows * b.Columns * p.Bytes)
	parts := float64(blocks + rest)
	adding := float64(sketch.CeilDiv(rest, processors)) * tile * parts / float64(rest)
	l.FixUp = cost.LaunchCycles + tile*parts/cost.GlobalBytes/float64(processors) + adding/cost.OneReads + cost.Latency
	return l
}
