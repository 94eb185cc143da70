package sketch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// window returns a 3x3 convolution of 6x6 positions with the given groups and channels per group.
func window(t *testing.T, groups, in, out int64) *expr.Workload {
	t.Helper()
	channel := "(add (mul (floordiv i2 {out}) {in}) r2)"
	if out == 1 {
		channel = "(add (mul i2 {in}) r2)"
	}
	text := `tilth-workload 1
input t0 f32[8,8,{ins}]
constant t1 f32[3,3,{in},{outs}]
sum t2 f32[6,6,{outs}] over 3,3,{in} = (mul [t0 (add i0 r0) (add i1 r1) ` + channel + `] [t1 r0 r1 r2 i2])
output t2
`
	text = strings.NewReplacer("{ins}", fmt.Sprint(groups*in), "{outs}", fmt.Sprint(groups*out), "{in}", fmt.Sprint(in), "{out}", fmt.Sprint(out)).Replace(text)
	w, err := expr.Parse(text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return w
}

// TestTermsOfSmallGroupsAreLanes requires a power of two of terms or more, and a vector with results of several
// groups or a group of a few results.
func TestTermsOfSmallGroupsAreLanes(t *testing.T) {
	for _, c := range []struct {
		target          string
		groups, in, out int64
		want            bool
	}{
		{"x86-64-v4", 8, 8, 8, true},
		{"x86-64-v4", 8, 4, 1, true},
		{"x86-64-v4", 8, 32, 8, true},
		{"x86-64-v4", 8, 12, 8, true},
		{"x86-64-v3", 8, 4, 4, true},
		{"x86-64-v4", 8, 6, 8, false},   // of 6 terms, two are a power of two
		{"x86-64-v4", 8, 16, 16, false}, // a group is a vector
		{"x86-64-v4", 8, 8, 5, false},   // vectors start within groups
		{"x86-64-v4", 8, 1, 1, false},   // there is one term
	} {
		name := fmt.Sprintf("%s %d groups %d to %d", c.target, c.groups, c.in, c.out)
		s := sketch.New(window(t, c.groups, c.in, c.out), sketch.Target(t, c.target), schedule.Strict)
		has := slices.Contains(s.Algorithms(), sketch.FoldAlgorithm)
		if has != c.want {
			t.Errorf("%s: there are such schedules: %t, want %t", name, has, c.want)
		}
		if !has {
			continue
		}
		s = s.Of(sketch.FoldAlgorithm)
		applied, err := s.Apply(s.Default())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if trace := string(applied.Trace()); !strings.Contains(trace, "\nrfactor ") {
			t.Errorf("%s: no terms are kept apart:\n%s", name, trace)
		}
	}
}
