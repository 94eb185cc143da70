package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// narrow are the operands of a product that are stored in 16 bits, or weights in 8, and that no instruction multiplies
// as they are.
type narrow struct {
	// weights is the load of the packed constant, data that of what all lanes share, which is cast where it is read or
	// in a copy. -1 for none.
	weights, data int
	// once is set where weights are cast when the model is compiled, and not each time that they are read.
	once bool
	// widened is the same sketch with that set; nil where it is that one, or there are no such weights.
	widened *Tile
}

// castsWeights reports whether weights are cast each time that they are read.
func (n *narrow) castsWeights() bool { return n.weights >= 0 && !n.once }

// wideOperands is that no operand is stored so.
var wideOperands = narrow{weights: -1, data: -1}

// findNarrow finds such operands of a product in float32 by a constant.
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

// widen makes the sketch with weights that are cast when the model is compiled. Integers are there for their size, and
// stay.
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

// fedAmong is the access to what feeds the reduction among copies of the accesses; nil when nothing does.
func (x *Tile) fedAmong(accesses []Access) *Access {
	for k := range x.accesses {
		if x.fed == &x.accesses[k] {
			return &accesses[k]
		}
	}
	return nil
}

// casts is what a step of a tile of so many vectors and positions asks of the units that multiply to cast what is
// stored in 16 bits, in cycles, and the operations that this takes: two for a vector, three for a number that goes to
// all lanes.
func (x *Tile) casts(tv, positions float64, z tileSizes) (busy, operations float64) {
	if x.narrow.castsWeights() {
		busy, operations = machine.Casting(x.target, tv), 2*tv
	}
	if z.castsData {
		operations += 3 * positions
	}
	return busy, operations
}

// applyNarrow casts the operands that the point has cast before they are multiplied, and returns the stages that feed
// the reduction then.
func (x *Tile) applyNarrow(b *sketch.Builder, u sketch.Unit, p TileParameters) []int {
	n := x.narrow
	if n.once && b.Err == nil {
		_, err := b.S.Widen(u.Acc, n.weights, array.Float32)
		b.Do(err)
	}
	if n.data < 0 || p.Feed == sketch.Inline || b.Err != nil {
		return u.Feeds
	}
	return x.copied(b, u, n.data, array.Float32)
}
