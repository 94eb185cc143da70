package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
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
