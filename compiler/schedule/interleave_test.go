package schedule

import (
	"slices"
	"strings"
	"testing"
)

func TestInterleaveNamesTwoDimensionsOfATensor(t *testing.T) {
	checkTraces(t, map[string]string{
		"interleave 1 2 0 1 4":  "interleave: stage 1 loads no tensor 2",
		"interleave 1 1 0 1 0":  "interleave: 0 neighbours are none, or more than 64",
		"interleave 1 1 0 1 65": "interleave: 65 neighbours are none, or more than 64",
		"interleave 1 1 0 0 4":  "interleave: 0 and 0 are not two of the 2 dimensions of the tensor",
		"interleave 1 1 0 2 4":  "interleave: 0 and 2 are not two of the 2 dimensions of the tensor",
		"interleave 1 1 0 1 4":  "",
	}, func(s *Schedule) {
		if shape := s.Stages[len(s.Stages)-1].Tensor.Shape; !slices.Equal(shape, []int64{3, 12, 4}) {
			t.Errorf("the copy has shape %v, want [3 12 4]", shape)
		}
	})
}

// TestRepeatedInterleavingIsBounded: an index would grow beyond all bounds.
func TestRepeatedInterleavingIsBounded(t *testing.T) {
	_, err := Replay(testWorkload(t), []byte("tilth-trace 1\n"+strings.Repeat("interleave 1 1 0 1 2\n", 500)))
	if err == nil || !strings.Contains(err.Error(), "would be larger than") {
		t.Errorf("five hundred times: %v", err)
	}
}
