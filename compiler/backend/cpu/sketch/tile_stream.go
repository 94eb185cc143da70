package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// streamedSteps is the maximum number of terms per sum for non-temporal stores. Stores hide behind the arithmetic of
// longer sums.
const streamedSteps = 128

// stream records where the nest's results may use non-temporal stores: the sums of a few products with contiguous
// tiles.
func (x *Tile) stream(s *schedule.Schedule, out *schedule.Stage) {
	if x.lanes < 2 || x.loadsOwn || !x.loadsShared || sketch.Product(x.reduce) > streamedSteps {
		return
	}
	x.results = NewStreaming(s, out)
	if x.joined != nil {
		x.joined.results = x.results
	}
}

// wholeLines refuses tiles that store a part of a line non-temporally, since memory would write it in parts.
func (x *Tile) wholeLines(z tileSizes, p TileParameters) error {
	if line := microarch.Line(x.target); p.Stream == 1 && (z.tv*int64(x.target.CPU.VectorBytes)%line != 0 || x.extent(x.vec)%x.width(z.tv) != 0) {
		return fmt.Errorf("space: a tile of %d vectors stores parts of lines past the caches", z.tv)
	}
	return nil
}
