package schedule

import (
	"strings"
	"testing"
)

// checkTraces replays traces on the test workload, of which each is refused with a reason, or legal where that is
// empty: then legal looks at the schedule.
func checkTraces(t *testing.T, reasons map[string]string, legal func(s *Schedule)) {
	t.Helper()
	for trace, want := range reasons {
		s, err := Replay(testWorkload(t), []byte("tilth-trace 1\n"+trace+"\n"))
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", trace, err)
		case want == "":
			legal(s)
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
}

func TestExtendIsForSumsOfProducts(t *testing.T) {
	checkTraces(t, map[string]string{
		"extend 1 0":                     "extend: 0 is no multiple, or more than 1024",
		"extend 1 2000":                  "extend: 2000 is no multiple, or more than 1024",
		"extend 0 4":                     "extend: stage 0 is no sum of products of two tensors",
		"extend 3 4":                     "extend: stage 3 is no sum of products of two tensors",
		"unroll 1 0\nextend 1 4":         "extend: stage 1 was already scheduled",
		"pack 0 0 0 0 1 0 0\nextend 1 4": "extend: constant 0 is already packed or transformed",
		"extend 1 4":                     "",
	}, func(s *Schedule) {
		if g := s.Stages[product]; g.Reduce[0].Extent != 12 || len(s.Stages) != 5 {
			t.Errorf("there are %d terms and %d stages, want 12 and 5", g.Reduce[0].Extent, len(s.Stages))
		}
	})
}
