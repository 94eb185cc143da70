package space

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/target"
)

// registerTile is what the innermost loop of a reduction keeps in registers: rows x vectors of accumulators.
type registerTile struct {
	rows, vectors int64
	// unroll is how many steps of the reduction are written out.
	unroll int64
	// more are registers that a step needs beside accumulators and operands.
	more int64
}

// legal keeps the accumulators, a row of vectors and the operand in flight, where instructions do not read it from memory, within
// the register file, and the unrolled code within what an instruction cache and a compiler take well.
func (r registerTile) legal(t *target.Target) error {
	need := r.rows*r.vectors + r.vectors + r.more
	if !broadcasts(t) {
		need++
	}
	if registers := int64(t.VectorRegisters); need > registers {
		return fmt.Errorf("space: a tile of %dx%d vectors needs %d vector registers of %d", r.rows, r.vectors, need, registers)
	}
	if r.rows*r.vectors*r.unroll > maxUnrolled {
		return fmt.Errorf("space: a tile of %dx%d vectors unrolled %d times is too much code", r.rows, r.vectors, r.unroll)
	}
	return nil
}

// broadcasts reports whether vector instructions read one operand as a broadcast from memory.
func broadcasts(t *target.Target) bool { return t.Has("avx512f") }
