package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Unit is the stages that one nest of loops computes: a map, or a reduction with the map that ends it.
type Unit struct {
	// Out is the stage whose loops are the outer ones; Acc the reduction computed inside its tiles, -1 for a map.
	Out, Acc int
	// Also are outputs on the way from Acc to Out, each computed from the one before: they are stored tile by tile,
	// too.
	Also []int
	// Feeds are the map stages that only this unit's reduction reads and that may be computed inside it, e.g. padding.
	Feeds []int
}

// Stored are the stages that the unit's nest stores, in order.
func (u Unit) Stored(s *schedule.Schedule) []*schedule.Stage {
	var list []*schedule.Stage
	for _, id := range append(slices.Clone(u.Also), u.Out) {
		list = append(list, s.Stages[id])
	}
	return list
}
