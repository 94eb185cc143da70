package gbdt

import "slices"

// grower grows trees on the same data.
type grower struct {
	data   *binned
	params *Params
	// workers is the number of features counted in parallel.
	workers int
	// rows holds the rows of the tree, leaf after leaf. scratch holds the rows of the right child while a
	// leaf is split.
	rows, scratch []int32
	// derivatives holds the derivatives of the rows being counted, in order.
	derivatives []sums
	// splits holds the best split of each feature of the tree, for both children.
	splits [2][]split
	// free lists unused histograms.
	free [][]histogram
}

func newGrower(b *binned, p *Params) *grower {
	return &grower{data: b, params: p, workers: p.workers(), scratch: make([]int32, 0, b.rows), derivatives: make([]sums, b.rows)}
}

// growing is a leaf that may be split.
type growing struct {
	// begin and end delimit its rows in grower.rows.
	begin, end int
	total      sums
	histograms []histogram // one per feature of the tree; nil if the leaf is too small to split
	best       split
	// parent is the parent node, -1 for the root. right is set for a right child.
	parent int
	right  bool
}

// grow grows a tree on the given rows and features, best leaf first. It also returns the leaves, which
// delimit their rows in g.rows.
func (g *grower) grow(rows []int32, features []int, first, second []float64) (Tree, []growing) {
	g.rows = rows
	root := &growing{end: len(rows), parent: -1}
	for _, r := range rows {
		root.total.first += first[r]
		root.total.second += second[r]
	}
	g.count(root, nil, features, first, second)
	var t Tree
	leaves := []growing{*root}
	for len(leaves) < g.params.Leaves {
		at := -1
		for i := range leaves {
			if leaves[i].best.gain > 0 && (at < 0 || leaves[i].best.gain > leaves[at].best.gain) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		l, r, ok := g.cut(leaves[at])
		if !ok { // rounding produced an empty child
			leaves[at].best.gain = 0
			continue
		}
		node := len(t.Nodes)
		s := leaves[at].best
		t.Nodes = append(t.Nodes, Node{
			Feature: s.feature, Threshold: g.data.bounds[s.feature][s.bin], Gain: s.gain, Leaf: g.leaf(&leaves[at]),
		})
		link(&t, &leaves[at], node)
		l.parent, r.parent, r.right = node, node, true
		g.countChildren(&leaves[at], &l, &r, features, first, second)
		leaves[at] = l
		leaves = append(leaves, r)
	}
	for i := range leaves {
		link(&t, &leaves[i], ^i)
		t.Leaves = append(t.Leaves, g.leaf(&leaves[i]))
		if h := leaves[i].histograms; h != nil {
			g.free, leaves[i].histograms = append(g.free, h), nil
		}
	}
	return t, leaves
}

// link sets the child of the leaf's parent.
func link(t *Tree, l *growing, child int) {
	switch {
	case l.parent < 0:
	case l.right:
		t.Nodes[l.parent].Right = child
	default:
		t.Nodes[l.parent].Left = child
	}
}

// leaf returns a leaf with the value that lowers the loss most, scaled by the learning rate.
func (g *grower) leaf(l *growing) Leaf {
	value := -l.total.first / (l.total.second + g.params.L2) * g.params.LearningRate
	return Leaf{Value: value, Weight: l.total.second, Rows: l.end - l.begin}
}

// cut splits the rows of a leaf and keeps their order.
func (g *grower) cut(l growing) (left, right growing, ok bool) {
	column, bin := g.data.columns[l.best.feature], uint8(l.best.bin)
	g.scratch = g.scratch[:0]
	mid := l.begin
	for _, r := range g.rows[l.begin:l.end] {
		if column[r] <= bin {
			g.rows[mid] = r
			mid++
		} else {
			g.scratch = append(g.scratch, r)
		}
	}
	copy(g.rows[mid:l.end], g.scratch)
	left = growing{begin: l.begin, end: mid, total: l.best.left}
	right = growing{begin: mid, end: l.end, total: l.total.minus(l.best.left)}
	return left, right, mid > l.begin && mid < l.end
}

// countChildren counts the smaller child. The larger child takes over the parent's histograms, minus those of
// the smaller.
func (g *grower) countChildren(parent, left, right *growing, features []int, first, second []float64) {
	small, large := left, right
	if left.end-left.begin > right.end-right.begin {
		small, large = right, left
	}
	large.histograms, parent.histograms = parent.histograms, nil
	g.count(small, large, features, first, second)
}

// count fills a leaf's histograms, subtracts them from the sibling's, and finds the best splits of both.
func (g *grower) count(l, sibling *growing, features []int, first, second []float64) {
	rows := g.rows[l.begin:l.end]
	for i, r := range rows {
		g.derivatives[i] = sums{first[r], second[r]}
	}
	l.histograms = g.take(len(features))
	for side := range g.splits {
		g.splits[side] = slices.Grow(g.splits[side][:0], len(features))[:len(features)]
	}
	parallel(g.workers, len(features), func(i int) {
		f := features[i]
		bins := len(g.data.bounds[f]) + 1
		h := &l.histograms[i]
		h.count(g.data.columns[f], bins, rows, g.derivatives)
		g.splits[0][i] = h.best(f, bins, l.total, g.params)
		if sibling != nil {
			sibling.histograms[i].subtract(h, bins)
			g.splits[1][i] = sibling.histograms[i].best(f, bins, sibling.total, g.params)
		}
	})
	l.best = largest(g.splits[0])
	if sibling != nil {
		sibling.best = largest(g.splits[1])
	}
}

// largest returns the first split with the largest gain.
func largest(splits []split) split {
	best := splits[0]
	for _, s := range splits[1:] {
		if s.gain > best.gain {
			best = s
		}
	}
	return best
}

func (g *grower) take(n int) []histogram {
	if last := len(g.free) - 1; last >= 0 && len(g.free[last]) >= n {
		h := g.free[last]
		g.free = g.free[:last]
		return h
	}
	return make([]histogram, n)
}

// sums holds the sums of the derivatives of some rows.
type sums struct{ first, second float64 }

func (s sums) minus(o sums) sums { return sums{s.first - o.first, s.second - o.second} }

// score returns twice the decrease of the loss that the best value for these rows achieves.
func (s sums) score(l2 float64) float64 { return s.first * s.first / (s.second + l2) }

// histogram holds the sums of a leaf's rows by bin of a feature. A byte indexes it without a bounds check.
type histogram [maxBins + 1]sums

// count fills the histogram from rows. derivatives are in the order of rows.
func (h *histogram) count(column []uint8, bins int, rows []int32, derivatives []sums) {
	clear(h[:bins])
	derivatives = derivatives[:len(rows)]
	for i, r := range rows {
		s, d := &h[column[r]], &derivatives[i]
		s.first += d.first
		s.second += d.second
	}
}

// subtract turns a parent's histogram into that of one child by subtracting the other child's.
func (h *histogram) subtract(child *histogram, bins int) {
	for b := range h[:bins] {
		s, of := &h[b], &child[b]
		s.first -= of.first
		s.second -= of.second
	}
}

// split is a decision: rows up to a bin go left.
type split struct {
	feature, bin int
	gain         float64
	left         sums
}

// best returns the split of a feature with the largest gain, or a gain of 0.
func (h *histogram) best(feature, bins int, total sums, p *Params) split {
	best := split{feature: feature}
	l2, minWeight := p.L2, p.MinWeight
	whole := total.score(l2)
	most := whole
	var left sums
	for b := range h[:bins-1] {
		s := &h[b]
		left.first += s.first
		left.second += s.second
		right := total.minus(left)
		if left.second < minWeight {
			continue
		}
		if right.second < minWeight {
			break
		}
		// The comparison of the children's scores avoids their two divisions, which would dominate.
		l, r := left.second+l2, right.second+l2
		if score := left.first*left.first*r + right.first*right.first*l; score > most*(l*r) {
			most = score / (l * r)
			best.bin, best.left = b, left
		}
	}
	best.gain = most - whole
	return best
}
