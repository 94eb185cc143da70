package selection

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

// alike has the kernels of a call, which are for several extents, lay out their weights alike, so that a package has
// one copy of them: as the kernel for all extents does. A task whose space has no such schedule keeps what was
// chosen.
func (c *chooser) alike(p *program.Program, tasks [][]alternative, chosen []alternative, numerics schedule.Numerics) error {
	done := map[int]bool{}
	for _, call := range p.Calls {
		layouts := chosen[call.Task].schedule.Layouts()
		for _, v := range call.Variants {
			if k := v.Task; !done[k] && chosen[k].schedule.Layouts() != layouts {
				var err error
				if chosen[k], err = c.withLayouts(p.Tasks[k], tasks[k], chosen[k], layouts, numerics); err != nil {
					return err
				}
			}
			done[v.Task] = true
		}
	}
	return nil
}

// withLayouts is what is best for a task among what lays out weights in a way.
func (c *chooser) withLayouts(task program.Task, known []alternative, chosen alternative, layouts string, numerics schedule.Numerics) (alternative, error) {
	if k := slices.IndexFunc(known, func(a alternative) bool { return a.schedule.Layouts() == layouts }); k >= 0 {
		return known[k], nil
	}
	b, err := registry.Of(c.target)
	if err != nil {
		return chosen, err
	}
	s := b.Space(task.Workload, c.target, numerics)
	var applied *schedule.Schedule
	p, ok := s.DefaultWhere(func(p space.Point) bool {
		made, err := s.Apply(p)
		return err == nil && made.Layouts() == layouts
	})
	if !ok {
		return chosen, nil
	}
	if applied, err = s.Apply(p); err != nil {
		return chosen, err
	}
	return newAlternative(task, applied, aot.Choice{Origin: FromDefault}, s.Cost(p)/b.Clock(c.target)), nil
}
