package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// plan holds the decisions of the rules about a workload: the stages to inline, and how each remaining nest is built.
type plan struct {
	// inline lists the stages to inline, producers first.
	inline []int
	units  []*unit
}

// unit is one nest of loops with its possible schedules.
type unit struct {
	Unit
	// cacheWrite is set if the reduction results from applying cache-write to cached.
	cacheWrite bool
	cached     int
	flop       float64
	// direct holds the schedules with direct sums, other those of another algorithm; nil if none applies.
	direct, other searchspace.Family
}

// Sketches holds the sketches for a kind of device, by purpose.
type Sketches struct {
	// Wholes lists the sketches for all stages of a workload, in the order in which they are tried; each returns
	// nil if it does not apply.
	Wholes []func(*expr.Workload) *Whole
	// Reduction returns the schedules of a unit with reduction g: those with direct sums, and those of other
	// algorithms; nil if none exist.
	Reduction func(s *schedule.Schedule, g *schedule.Stage, u Unit) (direct, other searchspace.Family)
	// Map returns the schedules of a unit without a reduction.
	Map func(s *schedule.Schedule, u Unit) searchspace.Family
}

// analyse applies the rules. Stage numbers are those of schedule.New.
func analyse(w *expr.Workload, k Sketches) *plan {
	for _, sketch := range k.Wholes {
		if x := sketch(w); x != nil {
			return &plan{inline: x.Inline, units: []*unit{{Unit: Unit{Out: x.Out, Acc: -1}, direct: x.Family, flop: w.Flop()}}}
		}
	}
	s := schedule.New(w)
	p := &plan{}
	for _, g := range s.Stages {
		// Inline rejects a stage that would make a consumer's body too large; such a stage keeps a nest of its own.
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
		u.Feeds = feeds(s, g, taken)
		taken[u.Out], taken[g.ID] = true, true
		for _, f := range u.Feeds {
			taken[f] = true
		}
		p.units = append(p.units, u)
		u.direct, u.other = k.Reduction(s, g, u.Unit)
		u.flop = Operations(g)
	}
	for _, g := range s.Stages {
		if g.Inlined || taken[g.ID] {
			continue
		}
		u := &unit{Unit: Unit{Out: g.ID, Acc: -1}, flop: Operations(g)}
		u.follow(s, taken)
		taken[u.Out] = true
		u.direct = k.Map(s, u.Unit)
		p.units = append(p.units, u)
	}
	return p
}

// inlinable reports whether a stage is a map that is not an output, is cheap to recompute, and is not read
// repeatedly by a reduction.
func inlinable(s *schedule.Schedule, g *schedule.Stage) bool {
	if g.Combiner != expr.None || g.IsOutput {
		return false
	}
	consumers := s.Consumers(g)
	for _, c := range consumers {
		if c.Combiner != expr.None && reused(c, g.Tensor) || expr.Size(c.Body)*expr.Size(g.Body) > MaxInlined {
			return false
		}
	}
	return len(consumers) <= 1 || !Expensive(g.Body)
}

// reused reports whether a reduction reads elements of t more than once: some spatial axis does not move its loads,
// or loads overlap because an index mixes a spatial with a reduction axis.
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
			if UsesAny(x, g.Axes) && UsesAny(x, g.Reduce) {
				return true
			}
		}
	}
	return false
}

// reductionUnit finds the map that ends a reduction and no other one. Without such a map, the reduction ends itself
// by cache-write.
func reductionUnit(s *schedule.Schedule, g *schedule.Stage, taken map[int]bool, next *int) *unit {
	u := &unit{Unit: Unit{Out: g.ID, Acc: g.ID}}
	if c := end(s, g); c != nil && !g.IsOutput && !taken[c.ID] {
		u.Out = c.ID
	} else {
		u.cached, u.Acc, u.cacheWrite = g.ID, *next, true
		*next++
	}
	return u
}

// end returns the map that is the only reader of a stage and reads it element by element, or nil.
func end(s *schedule.Schedule, g *schedule.Stage) *schedule.Stage {
	if c := s.Consumers(g); len(c) == 1 && c[0].Combiner == expr.None && c[0].ReadsPointwise(g.Tensor) {
		return c[0]
	}
	return nil
}

// follow extends a unit from output to output while each is computed from the previous one element by element. The
// nest of the last one computes all of them.
func (u *unit) follow(s *schedule.Schedule, taken map[int]bool) {
	for s.Stages[u.Out].IsOutput {
		c := end(s, s.Stages[u.Out])
		if c == nil || !c.IsOutput || taken[c.ID] {
			return
		}
		taken[u.Out] = true
		u.Also, u.Out = append(u.Also, u.Out), c.ID
	}
}

// feeds returns the maps that only reduction g reads and that do not end another unit.
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

// heaviest returns the unit that owns the knobs, or nil.
func (p *plan) heaviest() *unit {
	var best *unit
	for _, u := range p.units {
		if best == nil || u.flop > best.flop {
			best = u
		}
	}
	return best
}

// apply schedules every unit: the heaviest as given, the others by default choices.
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
			apply = func() error { return Settle(s, u.direct) }
		}
		if err := apply(); err != nil {
			return err
		}
	}
	return nil
}
