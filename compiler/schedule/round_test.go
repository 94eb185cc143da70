package schedule

import (
	"strings"
	"testing"
)

// TestRoundIsForSumsOfWhatIsComputed has a trace for each reason that it refuses, and one that it takes.
func TestRoundIsForSumsOfWhatIsComputed(t *testing.T) {
	for trace, want := range map[string]string{
		"round 1 2": "round: stage 1 loads no tensor 2",
		"round 3 0": "round: stage 3 is no sum of products in float32",
		"round 1 1": "round: tensor 1 of stage 1 is not computed in float32",
		"round 1 0": "",
	} {
		s, err := Replay(testWorkload(t), []byte("tilth-trace 1\n"+trace+"\n"))
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", trace, err)
		case want == "":
			if s.Numerics() != Fast || s.ErrorGrowth() <= 1 {
				t.Errorf("a rounded factor is %v, with errors %v times as large", s.Numerics(), s.ErrorGrowth())
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
}
