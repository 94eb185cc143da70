package sketch

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// winograd is the sketch of a convolution by Winograd's algorithm. Its data, transformed, and their product with the
// weights are computed block by block of tiles, which keeps both in a cache but reads the weights once a block; or,
// without blocks, each for all tiles at once, which reads everything once and divides the product among workers by
// weights.
type winograd struct {
	lanes, line int64
	constant    int
	// batch, y, x and c are axes of the convolution.
	batch   []int
	y, x, c int
	// images is the product of the batch axes; height, width, ic and oc are extents.
	images, height, width, ic, oc int64
	// filterings has what each algorithm asks for.
	filterings map[int64]schedule.Filtering
}

// newWinograd is nil when the reduction acc is no convolution that the algorithm computes.
func newWinograd(s *schedule.Schedule, acc *schedule.Stage, t *target.Target) *winograd {
	c, ok := s.Conv(acc.ID)
	if !ok {
		return nil
	}
	bytes := acc.Tensor.DType.Bytes()
	x := &winograd{
		lanes: max(1, int64(t.CPU.VectorBytes)/bytes), line: max(1, int64(t.CPU.CacheLineBytes)/bytes), constant: c.Constant,
		batch: c.Batch, y: c.Y, x: c.X, c: c.OC, images: 1,
		height: acc.Tensor.Shape[c.Y], width: acc.Tensor.Shape[c.X], ic: c.IC, oc: acc.Tensor.Shape[c.OC],
	}
	for _, k := range c.Batch {
		x.images *= acc.Tensor.Shape[k]
	}
	x.filterings = map[int64]schedule.Filtering{}
	for _, alg := range []int64{smallest, largest, tall} {
		if f, ok := c.Filtering(outputTile(alg)); ok {
			x.filterings[alg] = f
		}
	}
	if len(x.filterings) == 0 {
		return nil
	}
	return x
}

// algorithms are the values of the knob that choose this sketch, ascending.
func (x *winograd) algorithms() []int64 {
	return slices.Sorted(maps.Keys(x.filterings))
}

// winogradSizes are the numbers that follow from the settings.
type winogradSizes struct {
	// tiles x vectors is the register tile.
	tiles, vectors, ku int64
	// vecTiles is how many register tiles a chunk of the product has along the channels.
	vecTiles int64
	// rows x columns of tiles are a block; zero without blocks.
	rows, columns int64
	// ty x tx tiles cover an image.
	ty, tx int64
}

func (z winogradSizes) blocked() bool { return z.rows > 0 }

func (x *winograd) sizes(set space.Settings) winogradSizes {
	my, mx := outputTile(set[space.AlgorithmKnob])
	z := winogradSizes{ty: ceilDiv(x.height, my), tx: ceilDiv(x.width, mx), ku: max(1, set["wku"])}
	z.vectors = min(max(1, set["wv"]), ceilDiv(x.oc, x.lanes))
	covered := x.images * z.ty * z.tx
	if block := set["wb"]; block >= z.tx {
		z.rows, z.columns = divisorAtMost(z.ty, block/z.tx), z.tx
		covered = z.rows * z.columns
	} else if block > 0 {
		z.rows, z.columns = 1, divisorAtMost(z.tx, block)
		covered = z.columns
	}
	z.tiles = min(max(1, set["wt"]), covered)
	z.vecTiles = divisorAtMost(ceilDiv(x.oc, z.vectors*x.lanes), max(1, set["wcb"]))
	return z
}
