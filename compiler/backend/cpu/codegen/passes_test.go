package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// TestKernelsAreRightWithoutOptionalPasses leaves out each pass that may be left out.
func TestKernelsAreRightWithoutOptionalPasses(t *testing.T) {
	all := order
	defer func() { order = all }()
	for _, name := range []string{"lookup", "quotients", "partition", "borders", "padding", "fold", "tiles", "promote", "epilogues", "transpose", "dot", "squares", "across",
		"stream", "cse", "prefetch", "separate"} {
		t.Run(name, func(t *testing.T) {
			var err error
			if order, err = all.Without([]string{name}); err != nil {
				t.Fatal(err)
			}
			m, draw := modes[0], drawPoint
			switch name {
			case "squares":
				m, draw = squareMode, func(t *rapid.T, d *target.Target) kerneltest.Case { c, _ := drawSquarePoint(t, d); return c }
			case "tiles":
				m, draw = tileModes[0], drawTilePoint
			}
			checkDrawn(t, []mode{m}, 8, draw)
		})
	}
	if rest, err := all.Without([]string{"lookup", "quotients", "partition", "borders", "padding", "fold", "tiles", "promote", "epilogues", "transpose", "dot", "squares", "across",
		"stream", "cse", "prefetch", "separate"}); err != nil || len(rest) != 5 {
		t.Errorf("%d passes are essential, %v", len(rest), err)
	}
}
