package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// nests builds the nests of a point.
type nests struct {
	*attention
	*sketch.Builder
	q attentionParameters
	// block is the loop over blocks, piece that over pieces.
	block, piece int
	online       *schedule.OnlineStages
}

// Apply implements searchspace.Structure.
func (a *attention) Apply(s *schedule.Schedule, q attentionParameters) (err error) {
	defer sketch.Catch(&err)
	n := &nests{attention: a, Builder: &sketch.Builder{S: s}, q: q}
	for _, id := range []int{a.Keys, a.Values} {
		if id >= 0 {
			n.Do(s.Inline(id))
		}
	}
	n.online = sketch.Get(s.Online(a.Mixed, q.piece))
	n.results()
	n.mixed()
	n.rowSums(a.Total, a.Dims[a.Total])
	n.rowSums(a.Sum, a.Dims[a.Sum])
	n.weights()
	n.scores()
	return nil
}

// along maps a list of dimensions to the axes of a stage: batches and rows.
func (n *nests) along(dims []int) (batch []int, row int) {
	for _, k := range n.Batch {
		batch = append(batch, dims[k])
	}
	return batch, dims[n.Row]
}

// tile distributes the rows and columns of a stage over threads in the layout of matrix instructions. The loop over
// threads follows the outer iterators, and the reduction's loops follow it.
func (n *nests) tile(stage int, outer []int, row, column int, columns int64, reduction []int) {
	tall := rowsOf(n.Builder, stage, row, n.q.rows, 1)
	wide := columnsOf(n.Builder, stage, column, columns/8/n.q.wide)
	n.Do(n.S.Reorder(stage, slices.Concat(outer, threads(tall, wide), reduction, own(tall, wide))...))
	thread := n.Fuse(stage, threads(tall, wide))
	n.Mark(n.S.Unroll, stage, own(tall, wide)...)
	n.bind(stage, thread)
}

func (n *nests) bind(stage, thread int) {
	n.Mark(func(stage, iter int) error { return n.S.Bind(stage, iter, schedule.ThreadLevel) }, stage, thread)
}

// guarded divides an axis into tiles. The last tile may extend beyond the end.
func (n *nests) guarded(stage, axis int, factor int64) (outer, inner int) {
	return n.Split(stage, axis, factor, schedule.Guard)
}

// results builds the nest of the last stage, around all others.
func (n *nests) results() {
	tile, row := n.guarded(n.Out, n.Row, n.q.tile())
	all, column := n.guarded(n.Out, n.Column, n.columns())
	blocks := append(slices.Clone(n.Batch), tile, all)
	n.tile(n.Out, blocks, row, column, n.columns(), nil)
	n.block = n.Fuse(n.Out, blocks)
	n.Mark(func(stage, iter int) error { return n.S.Bind(stage, iter, schedule.BlockLevel) }, n.Out, n.block)
}

// terms divides the terms of a product and maps them to matrix instructions.
func (n *nests) terms(stage, axis int, extent int64) (loops []int) {
	const limit = 32
	terms := axis
	if extent > limit && extent%limit == 0 {
		var outer int
		outer, terms = n.Split(stage, axis, limit, schedule.Peel)
		loops = append(loops, outer)
	}
	if n.matrices {
		n.Do(n.S.Tensorize(stage, terms, n.format))
	}
	return append(loops, terms)
}

// mixed builds the nest of the second product. Its loop over pieces encloses the stages of a piece.
func (n *nests) mixed() {
	n.ComputeAt(n.Mixed, n.Out, n.block)
	n.Do(n.S.SetScope(n.Mixed, schedule.Registers))
	axes := len(n.S.Stages[n.Mixed].Axes)
	n.piece = axes
	batch, row := n.along(n.Dims[n.Mixed])
	n.tile(n.Mixed, append([]int{n.piece}, batch...), row, n.Dims[n.Mixed][n.Column], n.columns(), n.terms(n.Mixed, axes+1, n.q.piece))
	n.inPiece(n.online.Value, schedule.Shared)
	n.fetched(n.online.Value, n.gapOf(n.columns()), n.q.stages)
}

// inPiece computes a stage for each piece.
func (n *nests) inPiece(stage int, scope schedule.Scope) {
	n.ComputeAt(stage, n.Mixed, n.piece)
	n.Do(n.S.SetScope(stage, scope))
}

// fetched makes all threads fetch a stage cooperatively, with padding in words after its rows.
func (n *nests) fetched(stage int, gapWords, stages int64) {
	bytes := n.S.Stages[stage].Tensor.DType.Bytes()
	n.gap(stage, gapWords)
	CooperativeFetch(n.Builder, stage, Fetching{Threads: n.q.threads(), Vector: copyBytes / bytes, Stages: stages})
}

// rowSums assigns each row of a stage after the loop over pieces to a thread.
func (n *nests) rowSums(stage int, dims []int) {
	_, row := n.along(dims)
	n.rowThreads(stage, row)
	n.ComputeAt(stage, n.Out, n.block)
	n.Do(n.S.SetScope(stage, schedule.Shared))
}

// rowThreads assigns each row to a thread.
func (n *nests) rowThreads(stage, row int) {
	order := []int{row}
	for _, it := range n.S.Stages[stage].Leaves {
		if it.ID != row {
			order = append(order, it.ID)
		}
	}
	n.Do(n.S.Reorder(stage, order...))
	n.bind(stage, row)
}

// weights builds the stages between the two products.
func (n *nests) weights() {
	_, row := n.along(n.Dims[n.Largest])
	n.rowThreads(n.online.Change, row)
	n.inPiece(n.online.Change, schedule.Shared)
	n.combined(n.online.Sum, row)
	n.exponentials(row)
	n.rowThreads(n.online.Running, row)
	n.inPiece(n.online.Running, schedule.Shared)
	n.combined(n.online.Largest, row)
}

// exponentials makes all threads compute the exponentials of a piece, adjacent ones in adjacent threads.
func (n *nests) exponentials(row int) {
	id := n.online.Exp
	key := len(n.S.Stages[id].Axes) - 1
	n.Do(n.S.Reorder(id, leavesLast(n.S.Stages[id], row, key)...))
	_, lane := n.Split(id, n.Fuse(id, []int{row, key}), n.q.threads(), schedule.Peel)
	n.bind(id, lane)
	n.inPiece(id, schedule.Shared)
	n.gap(id, termsGap)
}

// gap pads the rows of a stage by some words.
func (n *nests) gap(stage int, words int64) {
	if words > 0 {
		n.Do(n.S.StorageAlign(stage, words*4/n.S.Stages[stage].Tensor.DType.Bytes()))
	}
}

// combined makes a few threads compute a result of each row and piece, and exchange their partial results.
func (n *nests) combined(id, row int) {
	if n.q.perRow() == 1 {
		n.rowThreads(id, row)
		n.inPiece(id, schedule.Shared)
		return
	}
	partial := sketch.Get(n.S.RFactor(id, 0, n.q.perRow(), schedule.Lanes))
	g := n.S.Stages[partial]
	lane := len(g.Axes) - 1
	n.Do(n.S.Reorder(partial, append(leavesLast(g, row, lane), len(g.Axes))...))
	n.bind(partial, n.Fuse(partial, []int{row, lane}))
	n.rowThreads(id, row)
	n.Mark(n.S.Shuffle, id, len(n.S.Stages[id].Axes))
	n.inPiece(id, schedule.Shared)
	n.inPiece(partial, schedule.Shared)
}

// leavesLast returns the order of a stage's axes with two of them last.
func leavesLast(g *schedule.Stage, a, b int) (order []int) {
	for k := range g.Axes {
		if k != a && k != b {
			order = append(order, k)
		}
	}
	return append(order, a, b)
}

// scores builds the nests of the first product and of its elementwise maps.
func (n *nests) scores() {
	for _, id := range []int{n.Masked, n.Scores} {
		batch, row := n.along(n.Dims[id])
		axes := len(n.S.Stages[id].Axes)
		if id == n.Scores {
			n.tile(id, batch, row, axes-1, n.q.keys(), n.terms(id, axes, n.D))
			n.inPiece(id, schedule.Registers)
			continue
		}
		all, key := n.guarded(id, axes-1, n.q.keys())
		n.tile(id, append(batch, all), row, key, n.q.keys(), nil)
		n.inPiece(id, schedule.Shared)
		n.gap(id, termsGap)
	}
	n.operands()
}

// operands fetches queries for all pieces, and keys for each.
func (n *nests) operands() {
	g := n.S.Stages[n.Scores]
	rowAxis, term := g.Axes[n.Dims[n.Scores][n.Row]], g.Reduce[0]
	for k, l := range expr.Loads(g.Body) {
		perm := byMemory(l)
		id := sketch.Get(n.S.CacheRead(n.Scores, k, perm))
		ofRows, words := expr.Uses(l, rowAxis), n.gapOf(n.q.keys())
		switch {
		case expr.Uses(l.Index[perm[len(perm)-1]], term):
			words = termsGap
		case ofRows:
			words = n.gapOf(n.q.tile())
		}
		if !ofRows {
			n.inPiece(id, schedule.Shared)
			n.fetched(id, words, n.q.stages)
			continue
		}
		n.ComputeAt(id, n.Out, n.block)
		n.Do(n.S.SetScope(id, schedule.Shared))
		n.fetched(id, words, 1)
	}
}

// byMemory returns the dimensions of a tensor in memory order, the contiguous one last.
func byMemory(l *expr.Load) []int {
	perm := sketch.Axes(len(l.Index))
	strides := l.Tensor.MemoryStrides()
	slices.SortStableFunc(perm, func(a, b int) int { return int(strides[b] - strides[a]) })
	return perm
}
