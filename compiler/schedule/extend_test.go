package schedule

import (
	"strings"
	"testing"
)

// TestExtendIsForSumsOfProductsByConstants has a trace for each reason that it refuses, and one that it takes.
func TestExtendIsForSumsOfProductsByConstants(t *testing.T) {
	for trace, want := range map[string]string{
		"extend 1 0":                     "extend: 0 is no multiple, or more than 1024",
		"extend 1 2000":                  "extend: 2000 is no multiple, or more than 1024",
		"extend 0 4":                     "extend: stage 0 is no sum of products of two tensors",
		"extend 3 4":                     "extend: stage 3 is no sum of products of two tensors",
		"unroll 1 0\nextend 1 4":         "extend: stage 1 was already scheduled",
		"pack 0 0 0 0 1 0 0\nextend 1 4": "extend: constant 0 is already packed or transformed",
		"extend 1 4":                     "",
	} {
		s, err := Replay(testWorkload(t), []byte("tilth-trace 1\n"+trace+"\n"))
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", trace, err)
		case want == "":
			if g := s.Stages[product]; g.Reduce[0].Extent != 12 || len(s.Stages) != 5 {
				t.Errorf("there are %d terms and %d stages, want 12 and 5", g.Reduce[0].Extent, len(s.Stages))
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
}
