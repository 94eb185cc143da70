package transfer

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

const (
	// nearTasks is the number of neighbouring tasks to take points from.
	nearTasks = 6
	// pointsPerNeighbour is the number of points taken from each neighbour; neighbourSlack is how much slower than
	// its best they may be.
	pointsPerNeighbour = 6
	neighbourSlack     = 1.25
	// unrelatedDistance is the distance added between workloads of different classes whose spaces have the same knobs.
	unrelatedDistance = 8
)

// near returns points of s that were fast for the same workload on a sibling target or for similar workloads.
// The nearest task comes first, and the best points of all tasks come before the second best.
func (h *History) near(s *searchspace.Space, digest string) []searchspace.Point {
	tasks := h.neighbours(s, digest)
	var points []searchspace.Point
	seen := map[string]bool{}
	for rank := range pointsPerNeighbour {
		for _, t := range tasks {
			r := t.derive()
			if rank >= len(r.ranked) || r.ranked[rank].LatencySeconds > neighbourSlack*r.ranked[0].LatencySeconds {
				continue
			}
			if p, ok := s.Parse(r.ranked[rank].Origin); ok && !seen[p.Key()] {
				seen[p.Key()] = true
				points = append(points, p)
			}
		}
	}
	return points
}

// neighbours returns the tasks nearest to a workload, excluding the workload itself on the same target.
func (h *History) neighbours(s *searchspace.Space, digest string) []*Task {
	type neighbour struct {
		task     *Task
		distance float64
	}
	own, knobs, flop := expr.ShapeOf(s.Workload.Text()), knobNames(s), s.Workload.Flop()
	var list []neighbour
	for _, t := range h.tasks {
		r := t.derive()
		sibling := t.Target.Fingerprint() != h.target.Fingerprint()
		if len(r.ranked) == 0 || r.digest == digest && !sibling {
			continue
		}
		d := own.Distance(r.shape)
		if math.IsInf(d, 1) {
			if r.knobs != knobs {
				continue
			}
			d = unrelatedDistance + math.Abs(math.Log2((flop+1)/(t.Workload.Flop()+1)))
		}
		if sibling {
			d += 0.5
		}
		list = append(list, neighbour{t, d})
	}
	slices.SortStableFunc(list, func(a, b neighbour) int { return cmp.Compare(a.distance, b.distance) })
	var tasks []*Task
	for _, n := range list[:min(nearTasks, len(list))] {
		tasks = append(tasks, n.task)
	}
	return tasks
}
