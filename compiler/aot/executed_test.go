package aot

import "testing"

// TestOperationsAreThoseOfTheExtents: a model of four rows does two thirds of the work for six rows, and missing
// data is reported as unknown.
func TestOperationsAreThoseOfTheExtents(t *testing.T) {
	_, o := openSoftmax(t)
	m := opened(t, o.Output).Manifest()
	sum := func(rows int64) (flop float64, bytes int64) {
		extents := map[string]int64{"rows": rows}
		for _, task := range m.Executed(extents) {
			if !task.IsOf(extents) {
				t.Errorf("the operations of %s are of %v, not of %v", task.Name, task.Extents, extents)
			}
			flop, bytes = flop+task.Flop, bytes+task.Bytes
		}
		return flop, bytes
	}
	limit, bytes := sum(6)
	for _, rows := range []int64{1, 2, 3, 4, 5} {
		if f, b := sum(rows); f <= limit*float64(rows-1)/6 || f >= limit*float64(rows+1)/6 || b*6 != bytes*rows {
			t.Errorf("%d rows: %g operations on %d bytes, where 6 rows have %g on %d", rows, f, b, limit, bytes)
		}
	}
	for what, spoil := range map[string]func(task *TaskInfo, call *CallInfo){
		"an older package":  func(task *TaskInfo, _ *CallInfo) { task.Definition = "" },
		"a damaged one":     func(task *TaskInfo, _ *CallInfo) { task.Definition = "tilth-workload 1\n" },
		"one without names": func(_ *TaskInfo, call *CallInfo) { call.Counts = nil },
	} {
		m := opened(t, o.Output).Manifest()
		for k := range m.Calls {
			spoil(&m.Tasks[m.Calls[k].Task], &m.Calls[k])
		}
		for _, task := range m.Executed(map[string]int64{"rows": 4}) {
			if task.Flop != 0 || task.Bytes != 0 {
				t.Errorf("%s: %g operations of %s on %d bytes, want none, which is not known", what, task.Flop, task.Name, task.Bytes)
			}
		}
	}
}
