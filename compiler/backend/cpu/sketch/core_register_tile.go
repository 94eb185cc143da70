package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// RegisterTile describes the innermost loop of a reduction: rows x vectors of accumulators.
type RegisterTile struct {
	Rows, Vectors int64
	// Unroll is the number of unrolled steps of the reduction. Whole is set if all are unrolled and no loop remains.
	Unroll int64
	Whole  bool
	// More is the number of registers that a step needs beside accumulators and operands.
	More int64
}

// The maximum unrolled operations per vector register, in the body of a reduction's loop and in a reduction without a
// loop. In 18 tasks' spaces, whose better parts were measured exhaustively, no best schedule exceeded them. Each
// operation takes a compiler about 0.2 ms.
const (
	unrolledOps = int64(4)
	straightOps = int64(6)
)

// Legal checks that the accumulators, a row of vectors and the operand in flight (unless instructions read it from
// memory) fit into the register file, and that the unrolled code suits the instruction cache and the compiler.
func (r RegisterTile) Legal(t *target.Target) error {
	need := r.Rows*r.Vectors + r.Vectors + r.More
	if !microarch.Broadcasts(t) {
		need++
	}
	if registers := int64(t.CPU.VectorRegisters); need > registers {
		return fmt.Errorf("space: a tile of %dx%d vectors needs %d vector registers of %d", r.Rows, r.Vectors, need, registers)
	}
	limit := unrolledOps
	if r.Whole {
		limit = straightOps
	}
	if r.Rows*r.Vectors*r.Unroll > limit*int64(t.CPU.VectorRegisters) {
		return fmt.Errorf("space: a tile of %dx%d vectors unrolled %d times is too much code", r.Rows, r.Vectors, r.Unroll)
	}
	return nil
}

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
	step := microarch.Overlap(products, loads, microarch.TileLatency)
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
	axes := len(b.S.Stages[id].Axes)
	b.Mark(b.S.Vectorize, id, axes-1)
	b.Mark(b.S.Parallel, id, b.FuseAxes(id, axes-2))
}
