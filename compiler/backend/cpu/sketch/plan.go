package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// plan is what the rules decide about a workload: which stages disappear into their consumers, and how each nest that
// is left is built.
type plan struct {
	// inline are the stages to inline, producers first.
	inline []int
	units  []*unit
}

// unit is one nest of loops: a map, or a reduction with the map that ends it.
type unit struct {
	// out is the stage whose loops are the outer ones; acc the reduction computed inside its tiles, -1 for a map.
	out, acc int
	// cacheWrite is set when acc comes from applying cache-write to cached.
	cacheWrite bool
	cached     int
	// also are outputs on the way from acc to out, each computed from the one before: they are stored tile by tile,
	// too.
	also []int
	// feeds are the map stages that only this unit's reduction reads and that may be computed inside it, e.g. padding.
	feeds []int
	flop  float64
	// direct is its schedules with direct sums, other those of another algorithm; nil where none applies.
	direct, other space.Family
}

// analyse applies the rules. Stage numbers are those of schedule.New.
func analyse(w *expr.Workload, t *target.Target) *plan {
	if a := newAttention(w, t); a != nil {
		return &plan{units: []*unit{{out: a.out, acc: -1, direct: a.family(), flop: w.Flop()}}}
	}
	if r := newRows(w, t); r != nil {
		return &plan{inline: r.inline, units: []*unit{{out: r.out, acc: -1, direct: r.family(), flop: w.Flop()}}}
	}
	s := schedule.New(w)
	p := &plan{}
	for _, g := range s.Stages {
		// Inline refuses what would make a consumer's body too large; such a stage keeps a nest of its own.
		if inlinable(s, g) && s.Inline(g.ID) == nil {
			p.inline = append(p.inline, g.ID)
		}
	}
	next := len(s.Stages)
	taken := map[int]bool{}
	for _, g := range s.Stages {
		if g.Inlined || taken[g.ID] || g.Combiner == expr.None {
			continue
		}
		u := reductionUnit(s, g, taken, &next)
		u.follow(s, taken)
		u.feeds = feeds(s, g, taken)
		taken[u.out], taken[g.ID] = true, true
		for _, f := range u.feeds {
			taken[f] = true
		}
		p.units = append(p.units, u)
		x := newTile(s, g, u, t)
		x.feed(s, g, u.feeds)
		if len(u.also) > 0 {
			x.joined = nil // a tile of an output on the way is known by its rows and columns
		}
		x.stream(s, s.Stages[u.out])
		u.direct, u.other = x.family(), otherAlgorithm(s, g, u, t, x)
		u.flop = stageFlop(g)
	}
	for _, g := range s.Stages {
		if g.Inlined || taken[g.ID] {
			continue
		}
		u := &unit{out: g.ID, acc: -1, flop: stageFlop(g)}
		u.follow(s, taken)
		taken[u.out] = true
		u.direct = newFlat(s, u, t).family()
		p.units = append(p.units, u)
	}
	return p
}

// maxInlined bounds the product of two bodies' sizes, which bounds what inlining one into the other can make; a
// compiler takes long for expressions of many thousand nodes.
const maxInlined = 1 << 16

// inlinable: a map that is no output, cheap enough to recompute, and not read again and again by a reduction.
func inlinable(s *schedule.Schedule, g *schedule.Stage) bool {
	if g.Combiner != expr.None || g.IsOutput {
		return false
	}
	consumers := s.Consumers(g)
	for _, c := range consumers {
		if c.Combiner != expr.None && reused(c, g.Tensor) || expr.Size(c.Body)*expr.Size(g.Body) > maxInlined {
			return false
		}
	}
	return len(consumers) <= 1 || !expensive(g.Body)
}

// reused reports whether a reduction reads elements of t more than once: some spatial axis does not move its loads, or
// loads overlap because an index mixes a spatial with a reduction axis.
func reused(g *schedule.Stage, t *expr.Tensor) bool {
	for _, l := range expr.Loads(g.Body) {
		if l.Tensor != t {
			continue
		}
		for _, v := range g.Axes {
			if v.Extent > 1 && !slices.ContainsFunc(l.Index, func(x expr.Expr) bool { return expr.Uses(x, v) }) {
				return true
			}
		}
		for _, x := range l.Index {
			if usesAny(x, g.Axes) && usesAny(x, g.Reduce) {
				return true
			}
		}
	}
	return false
}

func usesAny(e expr.Expr, vars []*expr.Var) bool {
	return slices.ContainsFunc(vars, func(v *expr.Var) bool { return v.Extent > 1 && expr.Uses(e, v) })
}

// expensive reports whether an expression is better stored than computed by each of several readers.
func expensive(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) {
		switch n := x.(type) {
		case *expr.Unary:
			found = found || n.Op.Work() == expr.Transcendental || n.Op == expr.Rsqrt // a root and a division
		case *expr.Binary:
			found = found || n.Op.Work() == expr.Transcendental
		}
	})
	return found
}

// reductionUnit finds the map that ends a reduction, and ends no other. Without one, the reduction ends itself through
// cache-write.
func reductionUnit(s *schedule.Schedule, g *schedule.Stage, taken map[int]bool, next *int) *unit {
	u := &unit{out: g.ID, acc: g.ID}
	if c := end(s, g); c != nil && !g.IsOutput && !taken[c.ID] {
		u.out = c.ID
	} else {
		u.cached, u.acc, u.cacheWrite = g.ID, *next, true
		*next++
	}
	return u
}

// end is the map that reads a stage element by element and is the only one that reads it; nil when there is none.
func end(s *schedule.Schedule, g *schedule.Stage) *schedule.Stage {
	if c := s.Consumers(g); len(c) == 1 && c[0].Combiner == expr.None && c[0].ReadsPointwise(g.Tensor) {
		return c[0]
	}
	return nil
}

// follow goes from output to output as long as each is made from the one before, element by element: all of them are
// computed in the nest of the last one.
func (u *unit) follow(s *schedule.Schedule, taken map[int]bool) {
	for s.Stages[u.out].IsOutput {
		c := end(s, s.Stages[u.out])
		if c == nil || !c.IsOutput || taken[c.ID] {
			return
		}
		taken[u.out] = true
		u.also, u.out = append(u.also, u.out), c.ID
	}
}

// stored are the stages that the unit's nest stores, in order.
func (u *unit) stored(s *schedule.Schedule) []*schedule.Stage {
	var list []*schedule.Stage
	for _, id := range append(slices.Clone(u.also), u.out) {
		list = append(list, s.Stages[id])
	}
	return list
}

// feeds are the maps that only reduction g reads, and that do not end another unit.
func feeds(s *schedule.Schedule, g *schedule.Stage, taken map[int]bool) []int {
	var list []int
	for _, l := range expr.Loads(g.Body) {
		p := s.Producer(l.Tensor)
		if p == nil || p.Combiner != expr.None || p.IsOutput || taken[p.ID] || slices.Contains(list, p.ID) {
			continue
		}
		if c := s.Consumers(p); len(c) == 1 && c[0] == g {
			list = append(list, p.ID)
		}
	}
	return list
}

func stageFlop(g *schedule.Stage) float64 {
	n := float64(array.Elements(g.Tensor.Shape))
	for _, r := range g.Reduce {
		n *= float64(r.Extent)
	}
	return n
}

// heaviest is the unit that the knobs belong to; nil when there is none.
func (p *plan) heaviest() *unit {
	var best *unit
	for _, u := range p.units {
		if best == nil || u.flop > best.flop {
			best = u
		}
	}
	return best
}

// apply schedules every unit: the heaviest as said, the others by the rules' own choice.
func (p *plan) apply(s *schedule.Schedule, heaviest func() error) error {
	for _, id := range p.inline {
		if err := s.Inline(id); err != nil {
			return err
		}
	}
	for _, u := range p.units {
		if u.cacheWrite {
			if _, err := s.CacheWrite(u.cached); err != nil {
				return err
			}
		}
	}
	chosen := p.heaviest()
	for _, u := range p.units {
		apply := heaviest
		if u != chosen {
			apply = func() error { return settle(s, u.direct) }
		}
		if err := apply(); err != nil {
			return err
		}
	}
	return nil
}

// settle applies the candidate of a family without knobs in the space that coordinate descent of the analytic cost
// finds.
func settle(s *schedule.Schedule, f space.Family) error {
	by, knobs := f.Algorithms()[0], f.Knobs()
	values := make([]int64, len(knobs))
	for k, knob := range knobs {
		values[k] = knob.Values[0]
	}
	cost := func() float64 {
		if f.Legal(by, values) != nil {
			return inf
		}
		return f.Cost(by, values)
	}
	for range 3 {
		for k, knob := range knobs {
			best, least := values[k], cost()
			for _, v := range knob.Values {
				values[k] = v
				if c := cost(); c < least {
					best, least = v, c
				}
			}
			values[k] = best
		}
	}
	return f.Apply(s, by, values)
}
