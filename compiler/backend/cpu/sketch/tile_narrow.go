package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// narrow describes the operands of a product that are stored in 16 bits, or weights in 8, and that no instruction
// multiplies directly.
type narrow struct {
	// weights is the load of the packed constant, data that of the operand shared by all lanes, which is cast at each
	// read or in a copy. -1 for none.
	weights, data int
	// once is set if weights are cast when the model is compiled instead of at each read.
	once bool
	// widened is the same sketch with once set, or nil.
	widened *Tile
}

// castsWeights reports whether weights are cast at each read.
func (n *narrow) castsWeights() bool { return n.weights >= 0 && !n.once }

// wideOperands describes a product without narrow operands.
var wideOperands = narrow{weights: -1, data: -1}

// findNarrow finds such operands of a float32 product by a constant.
func (x *Tile) findNarrow(s *schedule.Schedule, acc *schedule.Stage) {
	a, b, product := schedule.Factors(acc.Body)
	if x.dot != nil || x.lanes < 2 || !product || acc.Combiner != expr.Sum || acc.Tensor.DType != array.Float32 || len(x.packs) != 1 {
		return
	}
	for k, l := range []*expr.Load{a, b} {
		half := l.DType() == array.Float16 || l.DType() == array.BFloat16
		switch isWeights := l.Tensor == s.Workload.Constants[x.packs[0].constant]; {
		case isWeights && (half || l.DType() == array.Int8):
			x.narrow.weights = k
		case half && !expr.Uses(l, acc.Axes[x.vec]):
			x.narrow.data = k
			x.accesses[k].ElementBytes = array.Float32.Bytes()
			x.fed, x.feedOps = &x.accesses[k], 1
		}
	}
}

// widen makes the sketch with weights that are cast when the model is compiled. Integers are stored for their size
// and keep it.
func (x *Tile) widen() {
	if x.joined != nil {
		x.joined.widen()
	}
	if x.narrow.weights < 0 || x.accesses[x.narrow.weights].ElementBytes == 1 {
		return
	}
	y := *x
	y.accesses = slices.Clone(x.accesses)
	y.accesses[x.narrow.weights].ElementBytes = array.Float32.Bytes()
	y.fed = x.fedAmong(y.accesses)
	y.narrow.once = true
	x.narrow.widened = &y
}

// fedAmong returns the access to the reduction's feed among copies of the accesses, or nil.
func (x *Tile) fedAmong(accesses []cost.Access) *cost.Access {
	for k := range x.accesses {
		if x.fed == &x.accesses[k] {
			return &accesses[k]
		}
	}
	return nil
}

// casts returns the cycles that a tile's step takes of the multiply units to cast 16-bit values, and the number of
// operations: two per vector, three per broadcast number.
func (x *Tile) casts(tv, positions float64, z tileSizes) (busy, operations float64) {
	if x.narrow.castsWeights() {
		busy, operations = microarch.Casting(x.target, tv), 2*tv
	}
	if z.castsData {
		operations += 3 * positions
	}
	return busy, operations
}

// applyNarrow casts the operands that the point casts in advance, and returns the stages that then feed the reduction.
func (x *Tile) applyNarrow(b *sketch.Builder, u sketch.Unit, p TileParameters) []int {
	n := x.narrow
	if n.once {
		sketch.Get(b.S.Widen(u.Acc, n.weights, array.Float32))
	}
	if n.data < 0 || p.Feed == sketch.Inline {
		return u.Feeds
	}
	return x.copied(b, u, n.data, array.Float32)
}
