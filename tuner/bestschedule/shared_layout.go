package bestschedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

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
			if !suits || !c.fit(limitOf(p), chosen, kernels) {
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

// withLayouts returns the best alternative of a task with the given weight layouts. ok is false if there is none.
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
