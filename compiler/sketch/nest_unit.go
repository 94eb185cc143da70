package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Unit holds the stages that one nest of loops computes: a map, or a reduction with the map that ends it.
type Unit struct {
	// Out is the stage with the outer loops; Acc is the reduction computed inside its tiles, or -1 for a map.
	Out, Acc int
	// Also lists outputs between Acc and Out, each computed from the one before and stored tile by tile, too.
	Also []int
	// Feeds lists the map stages that only this unit's reduction reads and that may be computed inside it, e.g.
	// padding.
	Feeds []int
}

// Stored returns the stages that the unit's nest stores, in order.
func (u Unit) Stored(s *schedule.Schedule) []*schedule.Stage {
	var list []*schedule.Stage
	for _, id := range append(slices.Clone(u.Also), u.Out) {
		list = append(list, s.Stages[id])
	}
	return list
}
