package cost

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// matrices describes the matrices of an operand that a warp loads at once: eight rows of 16 bytes each.
type matrices struct {
	// bytes is the stride of rows. lineThreads is the number of threads that share a line of the operand, and packed
	// the number of neighbours per register.
	bytes, lineThreads, packed int64
}

// holds reports whether the matrix instructions of the enclosing loop, if any, take factors of a type directly.
func (w walker) holds(d array.DType) bool {
	return w.matrices != nil && w.matrices.Format.Packed() > 1 && w.matrices.Format.Holds(d)
}

// matricesAtOnce is the number of matrices that an instruction loads.
const matricesAtOnce = 4

// loaded returns how an operand's fragments are loaded as matrices from shared memory. ok is false if they are not.
// The addresses of the threads decide: either the four threads of a row read the same elements, or they read adjacent
// columns in pairs.
func (w walker) loaded(t *expr.Tensor, index expr.Expr) (m matrices, ok bool) {
	if !w.holds(t.DType) || w.threads < width {
		return m, false
	}
	term, known := expr.Linearize(index).Coef(w.matrices.Var)
	at := w.samples[0].eval(index)
	line := at[fragmentThreads] - at[0]
	m = matrices{lineThreads: fragmentThreads, packed: w.matrices.Format.Packed()}
	if at[1] != at[0] {
		line, m.lineThreads = (at[1]-at[0])/2, nvidia.MatrixColumns
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
	return m, m.bytes > 0 && m.bytes%nvidia.MatrixRowBytes == 0
}

// traffic returns the traffic of an operand. elements is the number of elements that each thread would read on its
// own.
func (m matrices) traffic(elements, warps float64) Traffic {
	loads := elements / float64(m.lineThreads*m.packed) * warps
	var row lanes
	for k := range row {
		row[k] = int64(k) * m.bytes
	}
	return Traffic{
		Requests: loads / matricesAtOnce,
		Bytes:    loads * nvidia.MatrixColumns * nvidia.MatrixRowBytes,
		Units:    loads * float64(Turns(1<<nvidia.MatrixColumns-1, &row, 1, nvidia.MatrixRowBytes)),
	}
}
