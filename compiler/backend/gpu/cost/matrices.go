package cost

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// matrices are those of an operand that a warp loads at once: eight rows of 16 bytes each.
type matrices struct {
	// bytes is the distance of two rows. lineThreads is how many threads of a warp have a line of the operand
	// together, and packed how many neighbours each has in a register.
	bytes, lineThreads, packed int64
}

// holds reports whether instructions for matrices, of the loop around if any, take factors of a type as they are.
func (w walker) holds(d array.DType) bool {
	return w.matrices != nil && w.matrices.Format.Packed() > 1 && w.matrices.Format.Holds(d)
}

// matricesAtOnce is how many of them an instruction loads.
const matricesAtOnce = 4

// loaded is how an operand's fragments are loaded as matrices from shared memory; false where they are not. Threads
// tell what they would read of it: in turn a row's four have the same elements, or have neighbouring columns by twos.
func (w walker) loaded(t *expr.Tensor, index expr.Expr) (m matrices, ok bool) {
	if !w.holds(t.DType) || w.threads < width {
		return m, false
	}
	term, known := expr.Linearize(index).Coef(w.matrices.Var)
	at := w.samples[0].eval(index)
	line := at[fragmentThreads] - at[0]
	m = matrices{lineThreads: fragmentThreads, packed: w.matrices.Format.Packed()}
	if at[1] != at[0] {
		line, m.lineThreads = (at[1]-at[0])/2, ir.MatrixColumns
	}
	size := t.DType.Bytes()
	switch {
	case !known:
		return m, false
	case term == 1:
		m.bytes = line * size
	case line == 1 && size == 2:
		m.bytes = term * size
	}
	return m, m.bytes > 0 && m.bytes%ir.MatrixRowBytes == 0
}

// traffic is that of an operand of which each thread of so many warps would read so many elements by itself.
func (m matrices) traffic(elements, warps float64) Traffic {
	loads := elements / float64(m.lineThreads*m.packed) * warps
	s, row := sample{active: 1<<ir.MatrixColumns - 1}, lanes{}
	for k := range row {
		row[k] = int64(k) * m.bytes
	}
	return Traffic{
		Requests: loads / matricesAtOnce,
		Bytes:    loads * ir.MatrixColumns * ir.MatrixRowBytes,
		Units:    loads * float64(s.turns(&row, 1, ir.MatrixRowBytes)),
	}
}
