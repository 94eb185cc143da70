package describe

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// analysis is what the columns are read from. It is used again for the next candidate, which then takes little memory.
type analysis struct {
	s *schedule.Schedule
	t *target.Target
	// cycles is the analytic cost.
	cycles float64
	// asked is what the workload asks for: the same for all its candidates.
	asked asked
	// statements are the stages that are not inlined, in the schedule's order; order has their numbers, consumers
	// first.
	statements []statement
	order      []int
	stores     []machine.Level
	room       arena
	// total adds the statements up; heaviest is the one that takes longest.
	total    sums
	heaviest *statement
	constant constants
}

// asked is the least that a workload takes.
type asked struct {
	of          *expr.Workload
	flop, bytes float64
}

// statement is a stage and its nest, at the place where it is computed.
type statement struct {
	nest   nest
	ops    arithmetic // for each iteration
	reads  []access
	result access
	// consumer is the number of the statement in whose nest this one is computed, in the loop of number at; -1 when on
	// its own.
	consumer, at int
	// times is how often the nest runs, filled what part of its iterations these have on average: less than 1 where
	// last tiles are partial.
	times, filled float64
	// needs has, for the loops of this nest, what one iteration of each asks of the statements inside, by number; nil
	// for none.
	needs [][][]float64
	inner tile
	trace traffic
	spent cycles
}

// iterations is how many values the statement computes, terms of reductions each, in the whole kernel.
func (x *statement) iterations() float64 {
	n := x.times * x.filled * x.nest.overlap
	for _, e := range x.nest.axes {
		n *= e
	}
	return n
}

// useful is the iterations that the result takes.
func (x *statement) useful() float64 {
	g, n := x.nest.stage, 1.0
	for k := range len(g.Axes) + len(g.Reduce) {
		n *= float64(g.AxisVar(k).Extent)
	}
	return n
}

// run analyses a schedule.
func (a *analysis) run(s *schedule.Schedule, t *target.Target, cycles float64) {
	a.s, a.t, a.cycles = s, t, cycles
	a.room.reset()
	if w := s.Workload; a.asked.of != w {
		a.asked = asked{w, w.Flop(), float64(w.Bytes())}
	}
	a.stores = machine.Levels(t)
	a.collect()
	for k := range a.statements {
		a.body(&a.statements[k])
	}
	a.sort()
	for _, k := range a.order {
		a.place(k)
	}
	a.total, a.heaviest, a.constant = sums{}, nil, a.constants()
	for k := range a.statements {
		x := &a.statements[k]
		x.inner = a.tile(x)
		x.trace = a.traffic(k)
		x.spent = a.spend(x)
		a.total.add(x)
		if a.heaviest == nil || x.spent.total() > a.heaviest.spent.total() {
			a.heaviest = x
		}
	}
}

// collect makes the statements, with the memory of those of the last candidate.
func (a *analysis) collect() {
	n := 0
	for _, g := range a.s.Stages {
		if g.Inlined {
			continue
		}
		if n == len(a.statements) {
			a.statements = append(a.statements, statement{})
		}
		x := &a.statements[n]
		*x = statement{nest: nest{stage: g, axes: a.room.take(len(g.Axes) + len(g.Reduce)), loops: x.nest.loops[:0]}, reads: x.reads[:0], consumer: -1, needs: x.needs[:0]}
		n++
	}
	a.statements = a.statements[:n]
	for k := range a.statements {
		x := &a.statements[k]
		if g := x.nest.stage; g.Consumer != nil {
			x.consumer = a.numberOf(g.Consumer)
		}
	}
}

func (a *analysis) numberOf(g *schedule.Stage) int {
	for k := range a.statements {
		if a.statements[k].nest.stage == g {
			return k
		}
	}
	return -1
}

// sort puts the statements in an order in which each comes before those that it reads.
func (a *analysis) sort() {
	a.order = a.order[:0]
	seen := a.room.take(len(a.statements))
	for k := range a.statements {
		a.visit(k, seen)
	}
	for i, j := 0, len(a.order)-1; i < j; i, j = i+1, j-1 {
		a.order[i], a.order[j] = a.order[j], a.order[i]
	}
}

func (a *analysis) visit(k int, seen []float64) {
	if seen[k] != 0 {
		return
	}
	seen[k] = 1
	for _, r := range a.statements[k].reads {
		if r.producer >= 0 {
			a.visit(r.producer, seen)
		}
	}
	a.order = append(a.order, k)
}

// line is the bytes of a cache line.
func (a *analysis) line() int64 { return int64(max(1, a.t.CPU.CacheLineBytes)) }
