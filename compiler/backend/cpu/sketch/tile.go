package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// TileParameters are the parameters of the tile sketch.
type TileParameters struct {
	// Rows x Columns positions x Vectors is the register tile.
	Rows, Columns, Vectors int64
	// RowTiles and VectorTiles are the maximum tiles per block in both directions.
	RowTiles, VectorTiles int64
	// Outer is the order of blocks and Inner that of the tiles of a block: 0 with the vectors inside, 1 with the
	// positions inside.
	Outer, Inner int64
	// Unroll is the number of unrolled steps of the reduction, and Reduce the size of its blocks, 0 for none.
	Unroll, Reduce int64
	// Prefetch is the prefetch distance of packed constants in bytes.
	Prefetch int64
	// 1 enables each: Pack copies panels, Joint puts the positions along one joint axis, Stream uses non-temporal
	// stores.
	Pack, Joint, Stream int64
	// Feed selects where the stages that feed the reduction are computed.
	Feed int64
	// Wide is 1 for 16-bit weights that are cast when the model is compiled.
	Wide int64
}

// Tile is the sketch of a reduction such as a product, a convolution or pooling. An output tile of th x tw positions
// x tv vectors stays in registers while the reduction runs, and the tiles are visited block by block.
//
//	parallel over (outer axes, row blocks, vector blocks), in either order
//	  tiles of the block, in one of two orders
//	    [padding or another feed, where the knob says so]
//	    acc tile = 0
//	    for reduction (blocked, the innermost iterations unrolled)
//	      acc tile += ...                                   th x tw x tv unrolled, vectorized
//	    out tile = the map that ends the unit
//
// The variants have files of their own: tile_joint.go has positions across rows, tile_panel.go copied operands,
// tile_dot.go and tile_squares.go integers, tile_turns.go integers of depthwise convolutions, tile_window.go unrolled
// windows, and tile_trim.go loops that omit padding.
type Tile struct {
	target *target.Target
	unit   sketch.Unit
	lanes  int64
	// vec is the vectorised axis; col and row are the axes of a tile's positions, or -1.
	vec, col, row int
	extents       []int64
	// limited reports which axes have a limit, and timed the extents of the executions with which kernels are timed,
	// if some have one.
	limited []bool
	timed   [][]int64
	reduce  []int64
	// steps holds the extents of the reduction's loops, with several terms per step if dot is set.
	steps []int64
	// order is the order of the reduction's loops, outermost first, as indices of its axes.
	order []int
	dot   *dotting
	// narrow describes 16-bit operands that are cast.
	narrow narrow
	// matrices is set if tile instructions multiply.
	matrices *tileMatrices
	packs    []tilePackable
	// loadsShared is set if all positions of a tile share an operand, loadsScalar if all its vectors share one, and
	// loadsOwn if each vector has an operand of its own.
	loadsShared, loadsScalar, loadsOwn bool
	accesses                           []cost.Access
	// ends holds the accesses of the maps after the reduction and of further results.
	ends   []cost.Access
	panels []panel
	// group is the number of adjacent channels that read the same elements of an operand; 0 without such an operand.
	// picks is set if vectors cross groups, so that their lanes are picked from the data of several groups. ragged is
	// set if a tile is a group instead, with a partial last vector. grouped lists the operands with groups.
	group         int64
	grouped       []int
	picks, ragged bool
	// vectors lists the possible numbers of vectors per tile.
	vectors []int64
	// mustPack is set if vectors can only be loaded from panels.
	mustPack bool
	// fed is the access to the feed of the reduction, or nil; feedOps counts the operations on its elements.
	fed     *cost.Access
	feedOps int
	// inside is the fraction of the reduction's products whose data is inside an image rather than padding.
	inside float64
	// windows holds the range inside the image for each axis of the reduction.
	windows [][]schedule.Window
	// joined is the same sketch with positions along one joint axis, or nil. In joined, joint lists the axes that it
	// is made of; col is the last of them and holds all positions.
	joined *Tile
	joint  []int
	// apart holds the extents of all axes before they are joined.
	apart   []int64
	results Streaming
}

// tilePackable is a constant that the reduction reads along the vectorised axis.
type tilePackable struct {
	constant int
	// dim is the dimension indexed by the vectorised axis, last the one indexed by the innermost reduction axis, or
	// -1.
	dim, last int
	rank      int
	// phases holds, per dimension, the distance between the elements of one sum when other sums read the elements
	// between them: the stride of a transposed convolution. It is 1 elsewhere.
	phases []int64
}

// NewTile returns the sketch of a reduction and of the stages that its nest stores.
func NewTile(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target) *Tile {
	x := newTile(s, acc, u, t)
	if x.vec >= 0 {
		if x.findDot(s, acc, dotOf(t)); x.dot == nil {
			if y := adjoinTerms(s, acc, u, t, dotOf(t)); y != nil {
				return y
			}
			if y := windowTerms(s, acc, u, t); y != nil {
				return y
			}
		}
		x.findNarrow(s, acc)
		x.joinPositions(acc)
	}
	x.fedBy(s, acc, u)
	x.widen()
	return x
}

// fedBy records the feed of the reduction and the stored stages.
func (x *Tile) fedBy(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit) {
	x.feed(s, acc, u.Feeds)
	if len(u.Also) > 0 {
		x.joined = nil // a tile of an intermediate output is identified by its rows and columns
	}
	x.stream(s, s.Stages[u.Out])
}

// newTile returns the sketch without its feed and without instructions for products of several terms.
func newTile(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target) *Tile {
	x := &Tile{target: t, unit: u, vec: sketch.LastLong(acc.Tensor.Shape), col: -1, row: -1, extents: acc.Tensor.Shape, timed: s.Workload.ExtentsAt(acc.Axes), lanes: 1, narrow: wideOperands}
	for _, v := range acc.Axes {
		x.limited = append(x.limited, v.Limit != nil)
	}
	for _, r := range acc.Reduce {
		x.reduce = append(x.reduce, r.Extent)
	}
	x.steps, x.order = x.reduce, x.loopOrder()
	if x.vec < 0 {
		return x
	}
	x.findPacks(s, acc)
	var packed []*expr.Tensor
	for _, p := range x.packs {
		packed = append(packed, s.ConstantTensor(p.constant))
	}
	x.accesses, x.ends = Accesses(s, acc, packed), EndAccesses(s, acc, u.Stored(s))
	x.findGroups(acc, int64(t.CPU.VectorBytes)/acc.Tensor.DType.Bytes())
	x.choosePositions()
	x.findPanels(s, acc)
	if x.contiguous(acc) {
		x.lanes = max(1, int64(t.CPU.VectorBytes)/acc.Tensor.DType.Bytes())
		x.mustPack = slices.ContainsFunc(x.panels, func(p panel) bool { return p.strided })
	} else {
		x.panels, x.picks, x.ragged = nil, false, false
	}
	x.vectors = sketch.AtMost(sketch.CeilDiv(x.extent(x.vec), x.lanes), 1, 2, 3, 4, 6, 8)
	switch {
	case x.ragged:
		x.vectors = []int64{microarch.Parts(x.group, x.lanes)}
	case x.picks:
		x.vectors, x.order = x.pickedTiles(x.lanes), x.loopOrder()
	}
	x.classifyLoads()
	return x
}

// findGroups finds the operands that a group of channels shares. A tile that fits into a group shares them like any
// operand that its vectors share; if groups fit into a tile, each of its vectors has its own.
func (x *Tile) findGroups(acc *schedule.Stage, lanes int64) {
	for k := range x.operands() {
		a := &x.accesses[k]
		g := a.GroupOf(x.vec)
		if g == 0 || lanes < 2 || x.group != 0 && x.group != g || g == 1 && !x.movesAround(a) {
			continue
		}
		if x.group, x.picks = g, g%lanes != 0; x.picks {
			x.ragged = x.fewerParts(lanes, acc)
			x.picks = !x.ragged && len(x.pickedTiles(lanes)) > 0
		}
		if g%lanes != 0 && !x.picks && !x.ragged {
			x.group = 0
			continue
		}
		// If lanes are picked, each channel contributes its fraction of the distance of groups.
		if x.grouped = append(x.grouped, k); x.picks {
			a.Average(x.vec)
		} else {
			a.Grouped = x.vec
		}
	}
}

// movesAround reports whether data depends on an axis of the results other than that of the vectors.
func (x *Tile) movesAround(a *cost.Access) bool {
	return a.Tensor.Role != expr.Constant && (a.MovesWithAny(0, x.vec) || a.MovesWithAny(x.vec+1, len(x.extents)))
}

// fitsGroups reports whether a tile of the given number of channels lies within a group, or starts at a group
// boundary, so that the groups of its lanes are known at compile time.
func (x *Tile) fitsGroups(channels int64) bool {
	return x.group == 0 || x.ragged || x.group%channels == 0 || x.picks && (channels%x.group == 0 || channels >= x.extent(x.vec))
}

// choosePositions chooses the axes of a tile's positions: the last two that do not affect some operand of the
// vectors, as pixels do not affect the weights, or any two if no axis qualifies, as in pooling. Axes that affect all
// operands, such as the batch of a product or the groups of a convolution, stay outside.
func (x *Tile) choosePositions() {
	shares := func(axis int) bool {
		return slices.ContainsFunc(x.accesses[:len(x.accesses)-1], func(a cost.Access) bool { return a.MovesWith(x.vec) && !a.MovesWith(axis) })
	}
	choose := func(fits func(axis int) bool) {
		for k := len(x.extents) - 1; k >= 0; k-- {
			switch {
			case k == x.vec || x.extents[k] == 1 || !fits(k):
			case x.col < 0:
				x.col = k
			case x.row < 0:
				x.row = k
			}
		}
	}
	if choose(shares); x.col < 0 {
		choose(func(int) bool { return true })
	}
}

// classifyLoads determines the operands that the positions of a tile share, and those that its vectors share.
func (x *Tile) classifyLoads() {
	for _, a := range x.accesses[:len(x.accesses)-1] {
		switch {
		case !a.MovesWith(x.vec):
			x.loadsScalar = true
		case !a.MovesWith(x.col) && !a.MovesWith(x.row):
			x.loadsShared = true
		default:
			x.loadsOwn = true
		}
	}
}

// contiguous reports whether every load, except of constants, panels and groups, advances by zero or one element
// along the axis of the vectors.
func (x *Tile) contiguous(g *schedule.Stage) bool {
	axis := g.Axes[x.vec]
	for k, l := range expr.Loads(g.Body) {
		panelled := slices.ContainsFunc(x.panels, func(p panel) bool { return p.tensor == l.Tensor })
		grouped := x.group > 0 && slices.Contains(x.grouped, k)
		if l.Tensor.Role != expr.Constant && !panelled && !grouped && expr.Uses(l, axis) && !sketch.Adjacent(l, axis) {
			return false
		}
	}
	return true
}

func (x *Tile) findPacks(s *schedule.Schedule, acc *schedule.Stage) {
	last := acc.Reduce[len(acc.Reduce)-1]
	for _, l := range expr.Loads(acc.Body) {
		c := s.Constant(l.Tensor)
		if c < 0 || slices.ContainsFunc(x.packs, func(p tilePackable) bool { return p.constant == c }) {
			continue
		}
		p := tilePackable{constant: c, dim: -1, last: -1, rank: len(l.Index)}
		reduces := false
		for k, e := range l.Index {
			switch {
			case e == expr.Expr(acc.Axes[x.vec]):
				p.dim = k
			case e == expr.Expr(last):
				p.last = k
			}
			reduces = reduces || sketch.UsesAny(e, acc.Reduce)
			p.phases = append(p.phases, phasesOf(e, acc, l.Tensor.Shape[k]))
		}
		if p.dim >= 0 && reduces {
			x.packs = append(x.packs, p)
		}
	}
}

// phasesOf returns the step of an index along a reduction axis if spatial axes select where it starts and the extent
// is a multiple of the step. Otherwise it returns 1.
func phasesOf(index expr.Expr, acc *schedule.Stage, extent int64) int64 {
	linear := expr.Linearize(index)
	for _, r := range acc.Reduce {
		if c, ok := linear.Coef(r); ok && c > 1 && extent%c == 0 && sketch.UsesAny(index, acc.Axes) {
			return c
		}
	}
	return 1
}

// feed records the stages that feed the reduction.
func (x *Tile) feed(s *schedule.Schedule, acc *schedule.Stage, feeds []int) {
	if x.vec < 0 {
		return
	}
	if x.joined != nil {
		x.joined.feed(s, acc, feeds)
	}
	// The loop over the rows of a window omits rows outside the image if all positions of a tile agree: for a 3x3
	// window on a 7x7 image, one row in ten.
	x.windows = nil
	for _, v := range acc.Reduce {
		x.windows = append(x.windows, s.Windows(acc, v))
	}
	for k, l := range expr.Loads(acc.Body) {
		for _, f := range feeds {
			if s.Stages[f].Tensor == l.Tensor {
				x.fed = &x.accesses[k]
				x.feedOps += operations(s.Stages[f].Body)
				x.inside = x.insideOf(s.Stages[f])
			}
		}
	}
}

// operations counts the arithmetic on elements in an expression, without indices and conditions on indices.
func operations(e expr.Expr) int {
	count := 0
	switch n := e.(type) {
	case *expr.Binary:
		if n.A.DType() != array.Int64 && n.A.DType() != array.Bool {
			count = 1
		}
	case *expr.Unary:
		count = 1
	case *expr.Load:
		return 0
	}
	expr.Children(e, func(c expr.Expr) { count += operations(c) })
	return count
}

// open returns the knobs.
func (x *Tile) open() []searchspace.Parameter[TileParameters] {
	type p = TileParameters
	width, height := x.extent(x.col), max(x.extent(x.row), x.extent(x.col))
	if x.joined != nil {
		width, height = x.joined.extent(x.joined.col), x.joined.extent(x.joined.col)
	}
	open := []searchspace.Parameter[p]{
		sketch.Knob("tv", func(p *p) *int64 { return &p.Vectors }, x.vectors...),
		sketch.Knob("tw", func(p *p) *int64 { return &p.Columns }, sketch.AtMost(width, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28)...),
		sketch.Knob("th", func(p *p) *int64 { return &p.Rows }, sketch.AtMost(x.extent(x.row), 1, 2, 3, 4, 7, 8)...),
		sketch.Knob("hb", func(p *p) *int64 { return &p.RowTiles }, sketch.AtMost(height, 1, 2, 4, 7, 8, 14, 16, 28, 56, 112, 1024)...),
		sketch.Knob("cb", func(p *p) *int64 { return &p.VectorTiles }, sketch.AtMost(x.extent(x.vec), 1, 2, 4, 8, 16, 64)...),
		sketch.Knob("outer", func(p *p) *int64 { return &p.Outer }, 0, 1),
		sketch.Knob("inner", func(p *p) *int64 { return &p.Inner }, 0, 1),
		sketch.Unrolling(sketch.Knob("ku", func(p *p) *int64 { return &p.Unroll }, sketch.AtMost(sketch.Product(x.steps), 1, 2, 4, 8, 16, 32)...)),
	}
	if len(x.reduce) > 1 && x.dot == nil && !x.picks {
		blocks := append([]int64{0}, sketch.Below(x.reduce[len(x.reduce)-1], 16, 32, 64, 128, 256)...)
		open = append(open, sketch.Knob("kb", func(p *p) *int64 { return &p.Reduce }, blocks...))
	}
	if len(x.packs) > 0 {
		open = append(open, sketch.Knob("pf", func(p *p) *int64 { return &p.Prefetch }, 0, 512, 1024, 2048, 4096))
	}
	if len(x.panels) > 0 && !x.mustPack {
		open = append(open, sketch.Knob("pk", func(p *p) *int64 { return &p.Pack }, 0, 1))
	}
	if x.joined != nil {
		open = append(open, sketch.Knob("joint", func(p *p) *int64 { return &p.Joint }, 0, 1))
	}
	if x.results.Open(x.target) {
		open = append(open, sketch.Knob(StreamKnob, func(p *p) *int64 { return &p.Stream }, 0, 1))
	}
	places := []int64{sketch.Inline, sketch.Alone, sketch.InBlock, sketch.InTile}
	if x.dot != nil { // the terms of a step must be contiguous
		places = []int64{sketch.Alone, sketch.InBlock, sketch.InTile}
	}
	if x.fed != nil {
		feed := sketch.Knob("feed", func(p *p) *int64 { return &p.Feed }, places...)
		if x.narrow.data >= 0 {
			feed.Widens = []int64{sketch.Alone}
		}
		open = append(open, feed)
	}
	if x.narrow.widened != nil {
		wide := sketch.Knob("wide", func(p *p) *int64 { return &p.Wide }, 0, 1)
		wide.Widens = []int64{1}
		open = append(open, wide)
	}
	return searchspace.WithChoices(open)
}

// Family returns the schedules of the tile.
func (x *Tile) Family() searchspace.Family { return x.family(searchspace.Direct) }

func (x *Tile) family(by searchspace.Algorithm) searchspace.Family {
	return &searchspace.Sketch[TileParameters]{Open: x.open(), Variants: []searchspace.Variant[TileParameters]{{By: by, Structure: x}}, Good: x.seeds(by), Tiles: x.tiled}
}

func (x *Tile) extent(axis int) int64 {
	if axis < 0 {
		return 1
	}
	return x.extents[axis]
}
