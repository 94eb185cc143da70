package selection

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

// alike has the kernels of a call, which are for several extents, lay out their weights alike, so that a package has
// one copy of them: in the way of the kernel for all extents that costs least, relative to what each kernel would
// take alone, on average over executions. A task whose space has no such schedule keeps what was chosen, and so do
// all where the weights would become too large.
func (c *chooser) alike(p *program.Program, tasks [][]alternative, chosen []alternative, numerics schedule.Numerics) error {
	done := map[string]bool{}
	for _, call := range p.Calls {
		key := fmt.Sprint(call.Tasks())
		if len(call.Variants) == 0 || done[key] {
			continue
		}
		done[key] = true
		least := math.Inf(1)
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
			if cost < least {
				least, best = cost, kernels
			}
		}
		for k, a := range best {
			chosen[k] = a
		}
	}
	return nil
}

// fit reports whether the weights stay within a limit with some tasks' schedules in place of those chosen.
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

// share is how often a call of a task runs it, of all executions.
func share(t program.Task) float64 { return t.Runs() / float64(t.Count) }

// withLayouts is what is best for a task among what lays out weights in a way; ok is false where nothing does.
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
	p, ok := s.DefaultWhere(func(p space.Point) bool {
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
