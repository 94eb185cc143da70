package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/target"
)

// registerTile is what the innermost loop of a reduction keeps in registers: rows x vectors of accumulators.
type registerTile struct {
	rows, vectors int64
	// unroll is how many steps of the reduction are written out; whole is set when that is all of them, so that there
	// is no loop.
	unroll int64
	whole  bool
	// more are registers that a step needs beside accumulators and operands.
	more int64
}

// Operations written out in the body of a reduction's loop, and in a reduction without one, for each vector register.
// Of 18 tasks' spaces, measured whole in their better parts, none had its best schedule beyond; each operation takes a
// compiler about 0.2 ms.
const (
	unrolledOps = int64(4)
	straightOps = int64(6)
)

// legal keeps the accumulators, a row of vectors and the operand in flight, where instructions do not read it from
// memory, within the register file, and the unrolled code within what an instruction cache and a compiler take well.
func (r registerTile) legal(t *target.Target) error {
	need := r.rows*r.vectors + r.vectors + r.more
	if !machine.Broadcasts(t) {
		need++
	}
	if registers := int64(t.CPU.VectorRegisters); need > registers {
		return fmt.Errorf("space: a tile of %dx%d vectors needs %d vector registers of %d", r.rows, r.vectors, need, registers)
	}
	most := unrolledOps
	if r.whole {
		most = straightOps
	}
	if r.rows*r.vectors*r.unroll > most*int64(t.CPU.VectorRegisters) {
		return fmt.Errorf("space: a tile of %dx%d vectors unrolled %d times is too much code", r.rows, r.vectors, r.unroll)
	}
	return nil
}
