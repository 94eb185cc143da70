package aot

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Executed returns the tasks that calls run for the named extents, with their operations and bytes. If these cannot
// be derived from the package, they are zero, and the task keeps its extents.
func (m *Manifest) Executed(extents map[string]int64) []TaskInfo {
	list, known := make([]TaskInfo, len(m.Calls)), map[string]TaskInfo{}
	steps := maps.Clone(extents)
	for _, e := range m.Extents {
		if n, given := steps[e.Name]; given {
			steps[e.Name] = n / e.step()
		}
	}
	for k, c := range m.Calls {
		number := c.Task
		if v := slices.IndexFunc(c.Variants, func(v CallVariant) bool { return v.suffices(extents) }); v >= 0 {
			number = c.Variants[v].Task
		}
		key := fmt.Sprint(number, c.Counts, c.Repeats)
		if _, done := known[key]; !done {
			known[key] = m.Tasks[number].with(extents, steps, c.Counts).times(c.repeats(extents))
		}
		list[k] = known[key]
	}
	return list
}

// with returns the task with the operations and bytes of other extents, which are so many steps; counts names those
// that are the workload's counts.
func (t TaskInfo) with(extents, steps map[string]int64, counts []string) TaskInfo {
	if t.IsOf(extents) {
		return t
	}
	totals, ok := t.totals(steps, counts)
	if t.Flop, t.IntegerOps, t.Bytes = totals.Flop, totals.IntegerOps, totals.Bytes; ok {
		t.Extents = extents
	}
	return t
}

// times returns the task with the operations and bytes of a number of runs; zero if it is unknown.
func (t TaskInfo) times(n int64) TaskInfo {
	t.Flop, t.IntegerOps, t.Bytes = t.Flop*float64(n), t.IntegerOps*float64(n), t.Bytes*n
	return t
}

// repeats returns the number of times that an execution with the named extents makes the call; 0 if it is unknown.
func (c CallInfo) repeats(extents map[string]int64) int64 {
	if c.Repeats == "" {
		return 1
	}
	n, err := extent.Parse(c.Repeats, func(name string) (extent.Extent, error) {
		if e, ok := extents[name]; ok {
			return extent.Of(e), nil
		}
		return extent.Extent{}, fmt.Errorf("%q is unknown", name)
	})
	count, ok := n.Const()
	if err != nil || !ok {
		return 0
	}
	return count
}

// IsOf reports whether the task's operations and bytes are those of an execution with the named extents.
func (t TaskInfo) IsOf(extents map[string]int64) bool {
	return t.Extents == nil || maps.Equal(t.Extents, extents)
}

// totals returns the totals of the workload for so many steps of extents, if these include its counts.
func (t TaskInfo) totals(steps map[string]int64, counts []string) (expr.Totals, bool) {
	if t.Definition == "" {
		return expr.Totals{}, false
	}
	w, err := expr.Parse(t.Definition)
	if err != nil {
		return expr.Totals{}, false
	}
	numbers := map[*expr.Tensor]int64{}
	for _, in := range w.Inputs {
		if in.Max == 0 {
			continue
		}
		if len(counts) == 0 {
			return expr.Totals{}, false
		}
		n, known := steps[counts[0]]
		if !known {
			return expr.Totals{}, false
		}
		numbers[in], counts = n, counts[1:]
	}
	return w.Totals(numbers), true
}

func (v CallVariant) suffices(extents map[string]int64) bool {
	for name, limit := range v.UpTo {
		if extents[name] > limit {
			return false
		}
	}
	return true
}
