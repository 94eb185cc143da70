package cost

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Analysis is the cost of a schedule per statement. Run reuses its memory for the next schedule, which invalidates
// everything read from it before.
type Analysis struct {
	Schedule *schedule.Schedule
	Target   *target.Target
	// Statements holds the stages that are not inlined, in the schedule's order. order holds their numbers, consumers
	// first.
	Statements []Statement
	order      []int
	// Levels holds the caches and TLBs that lines and pages are filled into, in the order of the fill and wait counts.
	Levels []microarch.Level
	// Total is the sum of all statements. Heaviest is the statement that takes longest.
	Total     Sums
	Heaviest  *Statement
	Constants Constants
	room      arena
	// quotients holds those of all accesses, and loops those around the last statement.
	quotients []quotient
	loops     []Around
}

// Cycles returns the time of the kernel in cycles of one core: the time of each statement's busiest worker, plus that
// of starting parallel regions. A parallel loop that runs once starts none.
func (a *Analysis) Cycles() float64 {
	cycles := a.Total.Elapsed
	for k := range a.Statements {
		if x := &a.Statements[k]; x.Consumer < 0 && x.Cycles.Chunks > 1 {
			cycles += microarch.Region(a.Target)
		}
	}
	return cycles
}

// Run analyses a schedule, replacing the last one.
func (a *Analysis) Run(s *schedule.Schedule, t *target.Target) {
	a.Schedule, a.Target = s, t
	a.room.reset()
	a.quotients = a.quotients[:0]
	a.Levels = microarch.Levels(t)
	a.collect()
	for k := range a.Statements {
		a.body(&a.Statements[k])
	}
	a.sort()
	for _, k := range a.order {
		a.place(k)
	}
	a.Total, a.Heaviest, a.Constants = Sums{}, nil, constantsOf(s)
	for k := range a.Statements {
		x := &a.Statements[k]
		x.Tile = a.tile(x)
		x.Traffic = a.traffic(k)
		x.Cycles = a.spend(x)
		a.Total.add(x)
		if a.Heaviest == nil || x.Cycles.Total() > a.Heaviest.Cycles.Total() {
			a.Heaviest = x
		}
	}
}

// collect builds the statements. It reuses the memory of the last candidate.
func (a *Analysis) collect() {
	n := 0
	for _, g := range a.Schedule.Stages {
		if g.Inlined {
			continue
		}
		if n == len(a.Statements) {
			a.Statements = append(a.Statements, Statement{})
		}
		x := &a.Statements[n]
		*x = Statement{Nest: Nest{Stage: g, Axes: a.room.take(len(g.Axes) + len(g.Reduce)), loops: x.Nest.loops[:0]}, Reads: x.Reads[:0], Consumer: -1, needs: x.needs[:0], Traffic: Traffic{Loops: x.Traffic.Loops[:0], Buffers: x.Traffic.Buffers[:0]}}
		n++
	}
	a.Statements = a.Statements[:n]
	for k := range a.Statements {
		x := &a.Statements[k]
		if g := x.Nest.Stage; g.Consumer != nil {
			x.Consumer = a.producer(g.Consumer.Tensor)
		}
	}
}

// sort orders the statements so that each precedes those that it reads.
func (a *Analysis) sort() {
	a.order = a.order[:0]
	seen := a.room.take(len(a.Statements))
	for k := range a.Statements {
		a.visit(k, seen)
	}
	for i, j := 0, len(a.order)-1; i < j; i, j = i+1, j-1 {
		a.order[i], a.order[j] = a.order[j], a.order[i]
	}
}

func (a *Analysis) visit(k int, seen []float64) {
	if seen[k] != 0 {
		return
	}
	seen[k] = 1
	for _, r := range a.Statements[k].Reads {
		if r.Producer >= 0 {
			a.visit(r.Producer, seen)
		}
	}
	a.order = append(a.order, k)
}

// arena allocates zeroed slices that share a lifetime. A candidate takes about a hundred of them.
type arena struct {
	block []float64
	used  int
	// beyond is the amount that did not fit.
	beyond int
}

// take returns n zeros, valid until reset.
func (a *arena) take(n int) []float64 {
	if a.used+n > len(a.block) {
		a.beyond += n
		return make([]float64, n)
	}
	s := a.block[a.used : a.used+n : a.used+n]
	a.used += n
	clear(s)
	return s
}

// reset frees all slices and makes room for the amount taken last.
func (a *arena) reset() {
	if a.beyond > 0 {
		a.block = make([]float64, 2*(a.used+a.beyond))
	}
	a.used, a.beyond = 0, 0
}

// Constants describes the constants that the kernel reads.
type Constants struct {
	// Bytes is their size as read, Given as the workload has them, and Packed the part of Bytes that is laid out anew.
	Bytes, Given, Packed float64
	// Prefetch is the prefetch distance in bytes.
	Prefetch float64
}

func constantsOf(s *schedule.Schedule) (k Constants) {
	size := func(t *expr.Tensor) float64 { return float64(array.Elements(t.Shape) * t.DType.Bytes()) }
	for c, t := range s.Workload.Constants {
		k.Given += size(t)
		if tr := s.Transforms[c]; tr != nil {
			t = tr.Tensor
		}
		k.Bytes += size(t)
		if s.Packs[c] != nil {
			k.Packed += size(t)
		}
		k.Prefetch = max(k.Prefetch, float64(s.Prefetches[c]))
	}
	return k
}
