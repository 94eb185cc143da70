package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Algorithms with tile multiplication instructions, by element type.
var (
	AMXI8   = searchspace.Algorithm{Name: "AMX I8", Number: 64}
	AMXBF16 = searchspace.Algorithm{Name: "AMX BF16", Number: 65}
	AMXF16  = searchspace.Algorithm{Name: "AMX F16", Number: 66}
)

// Algorithms with instructions that multiply two positions by two channels, by element type.
var (
	MMLAI8   = searchspace.Algorithm{Name: "MMLA I8", Number: 67}
	MMLABF16 = searchspace.Algorithm{Name: "MMLA BF16", Number: 68}
)

// Matrices is a block of rows x columns tiles of sums that a reduction keeps in tile registers.
type Matrices struct{ Rows, Columns int64 }

// Legal checks that sums and operands, one of which is loaded whole, fit into the tile registers.
func (m Matrices) Legal() error {
	if need := m.Rows*m.Columns + min(m.Rows, m.Columns) + 1; need > schedule.TileRegisters {
		return fmt.Errorf("space: sums of %dx%d tiles and their operands need %d of %d", m.Rows, m.Columns, need, schedule.TileRegisters)
	}
	return nil
}

// Cycles returns the cycles of the sums of steps instructions. Each sum depends on the previous one.
func (m Matrices) Cycles(steps float64) float64 {
	rows, columns := float64(m.Rows), float64(m.Columns)
	products, loads := rows*columns*microarch.TileProduct, (rows+columns)*microarch.TileLoad
	step := max(products, loads, microarch.TileLatency) + microarch.Hidden*min(products, loads)
	return steps*step + rows*columns*microarch.TileStore + microarch.TileLatency
}

// InterleaveCycles returns the cycles of interleaving elements in groups. A group moves as a unit if its elements are
// contiguous, and element by element otherwise. Estimated.
func InterleaveCycles(elements, group float64, sideBySide bool) float64 {
	if sideBySide {
		return 1.5 * elements / group
	}
	return 2 * elements
}

// ApplyInterleaved schedules the stage of an interleaved copy, which all workers make before all other stages.
func ApplyInterleaved(b *sketch.Builder, id int) {
	if b.Err != nil {
		return
	}
	axes := len(b.S.Stages[id].Axes)
	b.Mark(b.S.Vectorize, id, axes-1)
	b.Mark(b.S.Parallel, id, b.FuseAxes(id, axes-2))
}
