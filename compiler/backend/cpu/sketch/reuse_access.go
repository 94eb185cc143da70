package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Accesses returns those of a reduction, the result last.
func Accesses(s *schedule.Schedule, acc *schedule.Stage, packed []*expr.Tensor) []cost.Access {
	list := cost.Accesses(s, acc, len(acc.Axes)+len(acc.Reduce))
	for k := range list[:len(list)-1] {
		list[k].Packed = slices.Contains(packed, list[k].Tensor)
	}
	return list
}

// EndAccesses returns those of the stages that a nest stores, each an elementwise map of the previous one: other
// non-constant reads, and all results but the last, which Accesses includes.
func EndAccesses(s *schedule.Schedule, acc *schedule.Stage, stored []*schedule.Stage) (list []cost.Access) {
	for k, g := range stored {
		for _, a := range cost.Accesses(s, g, len(acc.Axes)+len(acc.Reduce)) {
			read := !a.Store && g != acc && a.Tensor.Role != expr.Constant && s.Producer(a.Tensor) == nil
			if read || a.Store && k < len(stored)-1 {
				list = append(list, a)
			}
		}
	}
	return list
}
