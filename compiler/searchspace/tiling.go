package searchspace

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Tiling describes the tiles of a reduction in terms shared with other compilers. Zero means unknown.
type Tiling struct {
	// Channels x Columns x Rows is the size of a register tile: along the vectorized axis, and along the last two
	// of the others.
	Channels int64 `json:"channels"`
	Columns  int64 `json:"columns,omitempty"`
	Rows     int64 `json:"rows,omitempty"`
	// ChannelTiles x ColumnTiles x RowTiles are the tiles of one task of the parallel loop.
	ChannelTiles int64 `json:"channel_tiles,omitempty"`
	ColumnTiles  int64 `json:"column_tiles,omitempty"`
	RowTiles     int64 `json:"row_tiles,omitempty"`
	// Reduce is the block size of the reduction's channels, and Unroll the unroll factor of its steps.
	Reduce int64 `json:"reduce,omitempty"`
	Unroll int64 `json:"unroll,omitempty"`
	// Outside is the dimension in which the tasks of the parallel loop advance last.
	Outside Outside `json:"outside,omitempty"`
}

// Outside is an order of the parallel loop.
type Outside string

// The orders.
const (
	UnknownOutside   Outside = ""
	ChannelsOutside  Outside = "channels"
	PositionsOutside Outside = "positions"
)

// maxTile limits the numbers of a tiling.
const maxTile = 1 << 20

// Valid returns an error if a tiling is invalid.
func (t Tiling) Valid() error {
	if t.Channels < 1 {
		return errors.New("a tiling has no channels")
	}
	for _, n := range []int64{t.Channels, t.Columns, t.Rows, t.ChannelTiles, t.ColumnTiles, t.RowTiles, t.Reduce, t.Unroll} {
		if n < 0 || n > maxTile {
			return fmt.Errorf("%d of a tiling is not from 0 to %d", n, maxTile)
		}
	}
	if !slices.Contains([]Outside{UnknownOutside, ChannelsOutside, PositionsOutside}, t.Outside) {
		return fmt.Errorf("%q is not an order of a tiling", t.Outside)
	}
	return nil
}

// Wish is a desired value of a knob. Higher weights are given up last.
type Wish struct {
	Knob   string
	Value  int64
	Weight float64
}

// Tiled returns the legal point nearest to a tiling. Knobs that the tiling does not determine have the choices of
// least analytic cost. ok is false if no family has such tiles, or none near them is legal.
func (s *Space) Tiled(t Tiling) (p Point, ok bool) {
	for i := range s.families {
		f := &s.families[i]
		start := make(Point, len(s.Knobs))
		if s.chooses() {
			if start[0] = slices.Index(s.Knobs[0].Values, f.algorithms[0].Number); start[0] < 0 {
				continue
			}
		}
		if wishes := f.Tiled(t); len(wishes) > 0 {
			if p, ok = s.near(f, start, wishes); ok {
				return p, true
			}
		}
	}
	return nil, false
}

// maxFar limits the combinations of desired values that near tries.
const maxFar = 2048

// near tries combinations in order of their distance from the desired values, the weighted sum of logarithmic
// ratios, until one is legal.
func (s *Space) near(f *member, start Point, wishes []Wish) (Point, bool) {
	n := newNearness(s, f, wishes)
	for range maxFar {
		c, ok := n.next()
		if !ok {
			break
		}
		if p, ok := s.completed(n.point(start, c), n.free); ok {
			return p, true
		}
	}
	return nil, false
}

// completed returns p with the choices of least analytic cost for the free knobs.
func (s *Space) completed(p Point, free []int) (Point, bool) {
	best, cost := p, s.Cost(p)
	for {
		next, lower := best, cost
		for _, k := range free {
			for v := range s.Knobs[k].Values {
				q := slices.Clone(best)
				q[k] = v
				if c := s.Cost(q); c < lower {
					next, lower = q, c
				}
			}
		}
		if lower >= cost {
			return best, !math.IsInf(cost, 1)
		}
		best, cost = next, lower
	}
}

// nearness enumerates combinations of desired knobs, nearest first.
type nearness struct {
	knobs []int
	// orders holds the choices of each knob, nearest first, and distances their distances.
	orders    [][]int
	distances [][]float64
	free      []int
	queue     combinations
	seen      map[string]bool
}

func newNearness(s *Space, f *member, wishes []Wish) *nearness {
	n := &nearness{seen: map[string]bool{}}
	for k := f.first; k < f.end; k++ {
		knob := s.Knobs[k]
		at := slices.IndexFunc(wishes, func(w Wish) bool { return w.Knob == knob.Name })
		if at < 0 {
			n.free = append(n.free, k)
			continue
		}
		order, distances := make([]int, len(knob.Values)), make([]float64, len(knob.Values))
		for v := range order {
			order[v] = v
		}
		far := func(v int) float64 { return wishes[at].distance(knob.Values[v]) }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far(a), far(b)) })
		for rank, v := range order {
			distances[rank] = far(v)
		}
		n.knobs, n.orders, n.distances = append(n.knobs, k), append(n.orders, order), append(n.distances, distances)
	}
	n.push(make(Point, len(n.knobs)))
	return n
}

func (w Wish) distance(v int64) float64 {
	return w.Weight * math.Abs(math.Log2(float64(v+1)/float64(w.Value+1)))
}

func (n *nearness) push(ranks Point) {
	if key := ranks.Key(); !n.seen[key] {
		n.seen[key] = true
		sum := 0.0
		for i, r := range ranks {
			sum += n.distances[i][r]
		}
		heap.Push(&n.queue, combination{ranks, sum})
	}
}

// next returns the next nearest combination.
func (n *nearness) next() (Point, bool) {
	if len(n.queue) == 0 {
		return nil, false
	}
	ranks := heap.Pop(&n.queue).(combination).ranks
	for i := range ranks {
		if ranks[i]+1 < len(n.orders[i]) {
			farther := slices.Clone(ranks)
			farther[i]++
			n.push(farther)
		}
	}
	return ranks, true
}

// point returns a point with a combination of the desired knobs.
func (n *nearness) point(start, ranks Point) Point {
	p := slices.Clone(start)
	for i, k := range n.knobs {
		p[k] = n.orders[i][ranks[i]]
	}
	return p
}

// combination is a rank for each desired knob, with its distance.
type combination struct {
	ranks    Point
	distance float64
}

type combinations []combination

func (c combinations) Len() int           { return len(c) }
func (c combinations) Less(i, j int) bool { return c[i].distance < c[j].distance }
func (c combinations) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *combinations) Push(x any) { *c = append(*c, x.(combination)) }

// Pop implements heap.Interface.
func (c *combinations) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
