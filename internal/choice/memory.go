package choice

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// A package may hold so many bytes of prepared sums beyond its weights: this part of them, or as much as is spent without asking.
const (
	addedPart  = 1.0 / 6
	addedBytes = 48 << 20
)

// overweight are the tasks whose schedules add to the weights what the package may not hold, ascending. Tasks that add most come
// first: per byte, all of them gain about the same for each row that they multiply.
func overweight(p *graph.Program, schedules []*schedule.Schedule) []int {
	weights, added := 0.0, make([]int64, len(p.Tasks))
	order := make([]int, len(p.Tasks))
	for k, task := range p.Tasks {
		order[k] = k
		added[k] = schedules[k].AddedBytes() * int64(task.Count)
		for _, c := range task.Workload.Constants {
			weights += float64(array.Elements(c.Shape)*c.DType.Bytes()) * float64(task.Count)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(added[b], added[a]) })
	room := int64(max(addedPart*weights, addedBytes))
	var list []int
	for _, k := range order {
		switch {
		case added[k] <= 0:
		case added[k] <= room:
			room -= added[k]
		default:
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}
