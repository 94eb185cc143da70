package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// conflicts returns the cycles in which all tiles wait for lines evicted from the first-level cache. A step of the
// reduction reads one element for each position of a tile, and the next steps read the following elements of the same
// lines. If neighbours are a multiple of a large power of two apart, as in tensors of 512 or 1024 channels, these
// lines map to so few cache sets that they are evicted before their reuse. Tiles of matrices read whole lines at once
// and have no such conflicts.
func (x *Tile) conflicts(t *target.Target, z tileSizes, p TileParameters, n *Nest) float64 {
	if x.matrices != nil || z.pack {
		return 0
	}
	loads := 0.0
	for k := range x.accesses[:len(x.accesses)-1] {
		if a := &x.accesses[k]; !a.Packed {
			loads += x.drivenOut(t, a, x.boxOf(a, p, n), z)
		}
	}
	vectors := 1.0
	if x.loadsOwn || x.picks {
		vectors = float64(z.tv)
	}
	tiles := x.places(z) * float64(sketch.CeilDiv(x.extent(x.vec), x.width(z.tv)))
	return loads * vectors * tiles * float64(sketch.Product(x.steps)) * microarch.Levels(t)[0].Cycles
}

// boxOf returns the shape of the memory that an access reads: that of its tensor, or of a separate copy of a part.
func (x *Tile) boxOf(a *cost.Access, p TileParameters, n *Nest) []int64 {
	if a != x.fed || p.Feed != sketch.InBlock && p.Feed != sketch.InTile {
		return a.Tensor.Shape
	}
	extents, _ := n.Fed(p.Feed)
	extents = n.spread(extents)
	box := make([]int64, len(a.Tensor.Shape))
	for d := range box {
		box[d] = int64(a.Reach(d, extents))
	}
	return box
}

// drivenOut returns how many elements that a step reads for a tile's positions are no longer in the first-level
// cache: all of them, if their lines exceed the ways of their sets.
func (x *Tile) drivenOut(t *target.Target, a *cost.Access, box []int64, z tileSizes) float64 {
	elements, apart := min(a.Elements(x.tileExtents(z)), float64(z.th*z.tw)), int64(0) // strides skip elements
	for _, axis := range x.movedIn(z) {
		apart = gcd(apart, int64(a.StepIn(box, axis))*a.ElementBytes)
	}
	if apart > 0 && elements > microarch.LinesPerSet(t, apart) {
		return elements
	}
	return 0
}

// movedIn returns the axes along which the positions of one tile differ.
func (x *Tile) movedIn(z tileSizes) (axes []int) {
	if z.th > 1 {
		axes = append(axes, x.row)
	}
	if z.tw > 1 {
		axes = append(axes, x.col)
	}
	if len(x.joint) > 0 && z.tw > x.rowOf() || x.crosses(z) {
		axes = append(axes, x.joint[:len(x.joint)-1]...)
	}
	return axes
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
