package bestschedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// Limits on what algorithms may add to a package's weights, relative to them, with a fixed allowance:
// runtimes that keep a second copy of the weights need more. Strassen's sums, which gain least for their
// size, have limits of their own.
const (
	addedPart     = 4.0 / 5
	freeBytes     = 84 << 20
	sumsPart      = 1.0 / 6
	freeSumsBytes = 48 << 20
	// addedToIntegers is the limit relative to integer weights of convolutions, which were chosen to save
	// space: the total stays below the size of floats. There is no fixed allowance then.
	addedToIntegers = 2.0
)

// size is what algorithms add to the weights, in bytes: Strassen's sums, and the total.
type size struct{ sums, all int64 }

func (s size) within(limit size) bool { return s.sums <= limit.sums && s.all <= limit.all }

// codeBytes is what a package has besides its weights, at most, in models of hundreds of tasks.
const codeBytes = 2 << 20

// limitOf returns the limit for the weights of a program, in a package of maxBytes, or of any size if that is 0.
func limitOf(p *program.Program, maxBytes int64) size {
	floats, integers, convolves := 0.0, 0.0, false
	for _, task := range p.Tasks {
		convolves = convolves || slices.ContainsFunc(task.Workload.Stages, castsIntegers)
		for _, c := range task.Workload.Constants {
			bytes := float64(array.Elements(c.Shape)*c.DType.Bytes()) * float64(task.Count)
			if c.DType.IsInt() {
				integers += bytes
			} else {
				floats += bytes
			}
		}
	}
	sums := sumsPart * (floats + integers)
	limit := size{sums: int64(max(sums, freeSumsBytes)), all: int64(addedPart*(floats+integers)) + freeBytes}
	if convolves {
		limit = size{sums: int64(sums), all: int64(addedPart*floats + addedToIntegers*integers)}
	}
	if maxBytes > 0 {
		left := max(0, maxBytes-codeBytes-int64(floats+integers))
		limit = size{sums: min(limit.sums, left), all: min(limit.all, left)}
	}
	return limit
}

// castsIntegers reports whether a stage is a sum of floats by integer weights, whose transforms are floats.
func castsIntegers(t *expr.Tensor) bool {
	a, b, ok := schedule.Factors(t.Body)
	if !ok || t.Combiner != expr.Sum || !t.DType.IsFloat() {
		return false
	}
	return slices.ContainsFunc([]*expr.Load{a, b}, func(l *expr.Load) bool { return l.Tensor.Role == expr.Constant && l.DType().IsInt() })
}

// fastest returns what the first alternatives of all tasks add.
func fastest(tasks [][]alternative) (sum size) {
	for _, list := range tasks {
		sum.sums += list[0].added.sums
		sum.all += list[0].added.all
	}
	return sum
}

// Limits are divided into this many parts; sizes are rounded up.
const (
	sumsParts = 48
	allParts  = 512
)

// pick chooses an alternative of each task that minimises the total time within the limit. It solves a knapsack
// problem by dynamic programming over the tasks and the parts of the limit, and prefers the first of equal
// alternatives. The first alternative of a task is the fastest, and one alternative of each adds nothing.
func pick(tasks []program.Task, lists [][]alternative, limit size) []int {
	k := knapsack{limit: limit, seconds: make([]float64, (sumsParts+1)*(allParts+1))}
	picked := make([]int, len(lists))
	var open []int
	for i, list := range lists {
		if list[0].added.all > 0 {
			open = append(open, i)
			k.add(list, float64(tasks[i].Count))
		}
	}
	for n, choice := range k.picked() {
		picked[open[n]] = choice
	}
	return picked
}

// knapsack is the state after some tasks.
type knapsack struct {
	limit size
	// seconds holds the minimum total time by usable parts of both limits: [sums][all], flattened.
	seconds []float64
	// steps holds the choices of each task.
	steps [][]step
}

// step is the alternative of a task, and the distance to the cell of the previous tasks.
type step struct{ alternative, back int32 }

func (k *knapsack) add(list []alternative, count float64) {
	next, steps := slices.Repeat([]float64{math.Inf(1)}, len(k.seconds)), make([]step, len(k.seconds))
	for n, a := range list {
		if !a.added.within(k.limit) {
			continue
		}
		sums, all := parts(a.added.sums, k.limit.sums, sumsParts), parts(a.added.all, k.limit.all, allParts)
		back := sums*(allParts+1) + all
		for row := sums; row <= sumsParts; row++ {
			for cell := row*(allParts+1) + all; cell < (row+1)*(allParts+1); cell++ {
				if s := k.seconds[cell-back] + count*a.seconds; s < next[cell] {
					next[cell], steps[cell] = s, step{int32(n), int32(back)}
				}
			}
		}
	}
	k.seconds, k.steps = next, append(k.steps, steps)
}

// picked backtracks from the full limits.
func (k *knapsack) picked() []int {
	picked, cell := make([]int, len(k.steps)), len(k.seconds)-1
	for i, steps := range slices.Backward(k.steps) {
		picked[i] = int(steps[cell].alternative)
		cell -= int(steps[cell].back)
	}
	return picked
}

// parts converts bytes to parts of the limit, rounded up.
func parts(bytes, limit int64, n int) int {
	if bytes == 0 {
		return 0
	}
	return int(math.Ceil(float64(bytes) / float64(limit) * float64(n)))
}

// alike gives the kernels of a call for several extents the same weight layout, so that a package contains
// one copy of the weights. It chooses the layout of the kernel for all extents with the lowest mean cost over
// executions, relative to each kernel's own best. A task whose space has no such schedule keeps its choice,
// and so do all tasks if the weights would become too large.
func (c *chooser) alike(p *program.Program, tasks [][]alternative, chosen []alternative, numerics schedule.Numerics) error {
	done := map[string]bool{}
	for _, call := range p.Calls {
		key := fmt.Sprint(call.Tasks())
		if len(call.Variants) == 0 || done[key] {
			continue
		}
		done[key] = true
		smallest := math.Inf(1)
		best := map[int]alternative{}
		for _, all := range tasks[call.Task] {
			kernels, cost, suits := map[int]alternative{call.Task: all}, 0.0, true
			for _, v := range call.Variants {
				a, ok, err := c.withLayouts(p.Tasks[v.Task], tasks[v.Task], chosen[v.Task], all.schedule.Layouts(), numerics)
				if err != nil {
					return err
				}
				kernels[v.Task], suits = a, suits && ok
			}
			if !suits || !c.fit(limitOf(p, c.MaxBytes), chosen, kernels) {
				continue
			}
			for _, k := range call.Tasks() {
				cost += share(p.Tasks[k]) * kernels[k].seconds / chosen[k].seconds
			}
			if cost < smallest {
				smallest, best = cost, kernels
			}
		}
		for k, a := range best {
			chosen[k] = a
		}
	}
	return nil
}

// fit reports whether the weights stay within a limit if some tasks use other schedules.
func (c *chooser) fit(limit size, chosen []alternative, instead map[int]alternative) bool {
	var sum size
	for k, a := range chosen {
		if other, ok := instead[k]; ok {
			a = other
		}
		sum.sums += a.added.sums
		sum.all += a.added.all
	}
	return sum.within(limit)
}

// share returns the fraction of executions in which a call runs a task.
func share(t program.Task) float64 { return t.Runs() / float64(t.Count) }

// withLayouts returns the best alternative of a task with the given weight layouts, if any.
func (c *chooser) withLayouts(task program.Task, known []alternative, chosen alternative, layouts string, numerics schedule.Numerics) (a alternative, ok bool, err error) {
	if chosen.schedule.Layouts() == layouts {
		return chosen, true, nil
	}
	if k := slices.IndexFunc(known, func(a alternative) bool { return a.schedule.Layouts() == layouts }); k >= 0 {
		return known[k], true, nil
	}
	b, err := registry.Of(c.target)
	if err != nil {
		return chosen, false, err
	}
	s := b.Space(task.Workload, c.target, numerics)
	var applied *schedule.Schedule
	p, ok := s.DefaultWhere(func(p searchspace.Point) bool {
		made, err := s.Apply(p)
		return err == nil && made.Layouts() == layouts
	})
	if !ok {
		return chosen, false, nil
	}
	if applied, err = s.Apply(p); err != nil {
		return chosen, false, err
	}
	return newAlternative(task, applied, aot.Choice{Origin: FromDefault}, s.Cost(p)/b.Clock(c.target)), true, nil
}
