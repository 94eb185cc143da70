package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/target"
)

// RegisterTile is what the innermost loop of a reduction keeps in registers: rows x vectors of accumulators.
type RegisterTile struct {
	Rows, Vectors int64
	// Unroll is how many steps of the reduction are written out; Whole is set when that is all of them, so that there
	// is no loop.
	Unroll int64
	Whole  bool
	// More are registers that a step needs beside accumulators and operands.
	More int64
}

// Operations written out in the body of a reduction's loop, and in a reduction without one, for each vector register.
// Of 18 tasks' spaces, measured whole in their better parts, none had its best schedule beyond; each operation takes a
// compiler about 0.2 ms.
const (
	unrolledOps = int64(4)
	straightOps = int64(6)
)

// Legal keeps the accumulators, a row of vectors and the operand in flight, where instructions do not read it from
// memory, within the register file, and the unrolled code within what an instruction cache and a compiler take well.
func (r RegisterTile) Legal(t *target.Target) error {
	need := r.Rows*r.Vectors + r.Vectors + r.More
	if !machine.Broadcasts(t) {
		need++
	}
	if registers := int64(t.CPU.VectorRegisters); need > registers {
		return fmt.Errorf("space: a tile of %dx%d vectors needs %d vector registers of %d", r.Rows, r.Vectors, need, registers)
	}
	most := unrolledOps
	if r.Whole {
		most = straightOps
	}
	if r.Rows*r.Vectors*r.Unroll > most*int64(t.CPU.VectorRegisters) {
		return fmt.Errorf("space: a tile of %dx%d vectors unrolled %d times is too much code", r.Rows, r.Vectors, r.Unroll)
	}
	return nil
}
