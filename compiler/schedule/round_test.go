package schedule

import "testing"

func TestRoundIsForSumsOfWhatIsComputed(t *testing.T) {
	checkTraces(t, map[string]string{
		"round 1 2": "round: stage 1 loads no tensor 2",
		"round 3 0": "round: stage 3 is not a sum of products in float32",
		"round 1 1": "round: tensor 1 of stage 1 is not computed in float32",
		"round 1 0": "",
	}, func(s *Schedule) {
		if s.Numerics() != Fast || s.ErrorGrowth() <= 1 {
			t.Errorf("a rounded factor is %v, with errors %v times as large", s.Numerics(), s.ErrorGrowth())
		}
	})
}
