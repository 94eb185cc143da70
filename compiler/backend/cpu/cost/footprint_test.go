package cost

import "testing"

// TestTouchedCountsRuns uses boxes of a row-major tensor of 58 x 58 x 64 floats: whole channels are separate lines,
// parts of a row share lines.
func TestTouchedCountsRuns(t *testing.T) {
	shape := []int64{58, 58, 64}
	for _, c := range []struct {
		name   string
		box    []int64
		packed bool
		lines  float64
	}{
		{"one vector", []int64{1, 1, 16}, false, 1},
		{"rows of all channels", []int64{3, 8, 64}, false, 3 * 8 * 64 * 4 / 64},
		{"a part of the channels", []int64{1, 4, 16}, false, 4},
		{"packed", []int64{2, 2, 8}, true, 2},
	} {
		if lines, pages := touched(shape, c.box, 4, 64, c.packed); lines != c.lines || pages < 1 {
			t.Errorf("%s: %v lines, %v pages; want %v lines", c.name, lines, pages, c.lines)
		}
	}
}
