package sketch_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
)

// TestEightRowsUseDifferentBanks uses 32 banks of four bytes: 16 bytes of a row take four.
func TestEightRowsUseDifferentBanks(t *testing.T) {
	for row := int64(8); row <= 512; row += 8 {
		apart, used := 2*(row+sketch.OddRowPadding(row, 2)), map[int64]bool{}
		for k := range int64(8) {
			used[k*apart/16%8] = true
		}
		if len(used) != 8 {
			t.Errorf("rows of %d elements, %d bytes apart, use %d groups of four banks", row, apart, len(used))
		}
	}
}
