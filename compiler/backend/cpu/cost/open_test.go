package cost_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestPaddingOfOpenExtentsCostsWhatThatOfFixedOnesDoes compares a column of 8 elements with one of up to 8.
func TestPaddingOfOpenExtentsCostsWhatThatOfFixedOnesDoes(t *testing.T) {
	operations := func(text string) cost.Operations {
		w, err := expr.Parse("tilth-workload 1\ninput t0 f32[8,16]\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		return analyse(schedule.New(w), parseTarget(t, "x86-64-v3", 1)).Total.Operations
	}
	fixed := operations("map t1 f32[10,16] = (select (and (le 1 i0) (lt i0 9)) [t0 (sub i0 1) i1] 0x0p+00:f32)\noutput t1\n")
	open := operations("input t1 i64[]<=8\n" +
		"map t2 f32[10,16] while i0 (add [t1] 2) = (select (and (le 1 i0) (lt i0 (add [t1] 1))) [t0 (sub i0 1) i1] 0x0p+00:f32)\noutput t2\n")
	if fixed.Guards == 0 || open != fixed {
		t.Errorf("operations are %+v, and %+v for open extents", fixed, open)
	}
}
