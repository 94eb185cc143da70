package choice

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// What algorithms add to a package's weights may take this part of them, and as much as is spent without asking: runtimes that keep
// the model's weights beside their own take more. Strassen's sums, which gain least for their size, have limits of their own.
const (
	addedPart     = 4.0 / 5
	freeBytes     = 84 << 20
	sumsPart      = 1.0 / 6
	freeSumsBytes = 48 << 20
)

// The parts of a direct sum's time that the algorithms save.
const (
	savedByStrassen = 1.0 / 8
	savedByWinograd = 1.0 / 2
)

// addition is what a task's schedule adds to the weights.
type addition struct {
	task      int
	sums, all int64
	// gain is about how many operations it saves for each byte.
	gain float64
}

// overweight are the tasks whose schedules add to the weights what the package may not hold, ascending. Those that gain most for
// their bytes come first.
func overweight(p *graph.Program, schedules []*schedule.Schedule) []int {
	weights := 0.0
	var additions []addition
	for k, task := range p.Tasks {
		for _, c := range task.Workload.Constants {
			weights += float64(array.Elements(c.Shape)*c.DType.Bytes()) * float64(task.Count)
		}
		sums, all := schedules[k].AddedBytes()
		if all <= 0 {
			continue
		}
		saved := savedByWinograd
		if sums > 0 {
			saved = savedByStrassen
		}
		count := int64(task.Count)
		additions = append(additions, addition{k, sums * count, all * count, saved * task.Workload.Flop() / float64(all)})
	}
	slices.SortStableFunc(additions, func(a, b addition) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(b.all, a.all))
	})
	room, sumsRoom := int64(addedPart*weights)+freeBytes, int64(max(sumsPart*weights, freeSumsBytes))
	var list []int
	for _, a := range additions {
		if a.all > room || a.sums > sumsRoom {
			list = append(list, a.task)
			continue
		}
		room -= a.all
		sumsRoom -= a.sums
	}
	slices.Sort(list)
	return list
}
