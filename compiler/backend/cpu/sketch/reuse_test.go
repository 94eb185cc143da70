package sketch

import "testing"

func TestAccessTouchesWhatItsAxesReach(t *testing.T) {
	// A 3x3 window over an image of 58 x 58 x 64: axes row, column, channel out; window rows, columns, channels in.
	a := Access{ElementBytes: 4, Shape: []int64{58, 58, 64}, Dims: [][]int64{{1, 0, 0, 1, 0, 0}, {0, 1, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 1}}}
	extents := []int64{1, 6, 16, 3, 3, 64}
	for d, want := range []int64{3, 8, 64} {
		if got := a.Extent(d, extents); got != want {
			t.Errorf("dimension %d: %d elements, want %d", d, got, want)
		}
	}
	if lines, _ := a.Touched(extents, 64); lines != 3*8*64*4/64 {
		t.Errorf("%v lines, want %d", lines, 3*8*64*4/64)
	}
	if a.MovesWith(2) || !a.MovesWith(1) {
		t.Error("the output's channel moves the window, or its column does not")
	}
}
