package cost_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestLoopOfOneIterationCostsNothing covers loops without an axis, at any position and with any annotation.
func TestLoopOfOneIterationCostsNothing(t *testing.T) {
	w, err := expr.Parse("tilth-workload 1\ninput t0 f32[8,64]\nmap t1 f32[8,64] = (exp [t0 i0 i1])\noutput t1\n")
	if err != nil {
		t.Fatal(err)
	}
	on := parseTarget(t, "x86-64-v3", 1)
	cycles := func(trace string) float64 {
		s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
		if err != nil {
			t.Fatal(err)
		}
		return analyse(s, on).Cycles()
	}
	plain, vectors := cycles("reorder 0 0 1\n"), cycles("split 0 1 8 0\nvectorize 0 3\n")
	for trace, want := range map[string]float64{
		"unit-loop 0\n": plain, "unit-loop 0\nsplit 0 2 4 0\n": plain, "unit-loop 0\nfuse 0 2 0\n": plain,
		"unit-loop 0\nreorder 0 0 1 2\nvectorize 0 2\n": plain,
		"unit-loop 0\nsplit 0 1 8 0\nvectorize 0 4\n":   vectors,
		"unit-loop 0\nreorder 0 0 2 1\nunroll 0 2\n":    plain,
		"unit-loop 0\nparallel 0 2\nreorder 0 2 0 1\n":  plain,
		"unit-loop 0\nunit-loop 0\nfuse 0 3 2\n":        plain,
	} {
		if got := cycles(trace); got != want {
			t.Errorf("%q costs %v cycles, not %v", trace, got, want)
		}
	}
}
