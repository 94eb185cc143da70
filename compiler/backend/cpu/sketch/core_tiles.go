// Core is what sketches for processors share of a core: what its registers hold, and stores past its caches.

package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
)

// The algorithms of instructions that multiply tiles, by what these hold.
var (
	AMXI8   = space.Algorithm{Name: "AMX I8", Number: 64}
	AMXBF16 = space.Algorithm{Name: "AMX BF16", Number: 65}
	AMXF16  = space.Algorithm{Name: "AMX F16", Number: 66}
)

// The algorithms of instructions that multiply two positions by two channels, by what they multiply.
var (
	MMLAI8   = space.Algorithm{Name: "MMLA I8", Number: 67}
	MMLABF16 = space.Algorithm{Name: "MMLA BF16", Number: 68}
)

// Matrices is rows x columns of tiles of sums, whose reduction keeps them in tile registers.
type Matrices struct{ Rows, Columns int64 }

// Legal keeps sums and operands, of which one is loaded whole, within the tiles that there are.
func (m Matrices) Legal() error {
	if need := m.Rows*m.Columns + min(m.Rows, m.Columns) + 1; need > schedule.TileRegisters {
		return fmt.Errorf("space: sums of %dx%d tiles and their operands need %d of %d", m.Rows, m.Columns, need, schedule.TileRegisters)
	}
	return nil
}

// Cycles is what the sums of so many instructions' terms take. Each sum waits for the one before.
func (m Matrices) Cycles(steps float64) float64 {
	rows, columns := float64(m.Rows), float64(m.Columns)
	products, loads := rows*columns*machine.TileProduct, (rows+columns)*machine.TileLoad
	step := max(products, loads, machine.TileLatency) + machine.Hidden*min(products, loads)
	return steps*step + rows*columns*machine.TileStore + machine.TileLatency
}

// InterleaveCycles is what interleaving so many elements in groups of neighbours costs: groups are moved as one where
// neighbours lie side by side before, and element by element elsewhere. Estimated.
func InterleaveCycles(elements, group float64, sideBySide bool) float64 {
	if sideBySide {
		return 1.5 * elements / group
	}
	return 2 * elements
}

// ApplyInterleaved schedules the stage of an interleaved copy, which is made before all else, on all workers.
func ApplyInterleaved(b *sketch.Builder, id int) {
	if b.Err != nil {
		return
	}
	axes := len(b.S.Stages[id].Axes)
	b.Mark(b.S.Vectorize, id, axes-1)
	b.Mark(b.S.Parallel, id, b.FuseAxes(id, axes-2))
}
