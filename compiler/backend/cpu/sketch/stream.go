package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// streamKnob chooses whether results are stored past the caches.
const streamKnob = "stream"

const (
	// streamedPart of the last cache is how large results are that may be stored past it, lostPart how large those are
	// of which their reader finds nothing there anyway.
	streamedPart, lostPart = 0.25, 0.7
	// streamedSteps is how many terms the sums of results may have: stores hide behind the arithmetic of longer ones.
	streamedSteps = 128
)

// streaming is the choice of how the results of a nest are stored.
type streaming struct {
	// bytes of results; 0 where there is no choice.
	bytes float64
}

// newStreaming is the choice for a stage that a nest stores last.
func newStreaming(s *schedule.Schedule, out *schedule.Stage) streaming {
	if !out.IsOutput || out.Tensor.Strides != nil || len(s.Consumers(out)) > 0 {
		return streaming{}
	}
	return streaming{float64(array.Elements(out.Tensor.Shape) * out.Tensor.DType.Bytes())}
}

// open reports whether there is a choice.
func (x streaming) open(t *target.Target) bool {
	return x.bytes > 0 && x.bytes >= streamedPart*machine.LastCache(t)
}

// cost is the cycles that the choice adds; 1 stores past the caches.
func (x streaming) cost(t *target.Target, choice int64) float64 {
	lines, lost := x.bytes/float64(machine.Line(t)), x.bytes >= lostPart*machine.LastCache(t)
	switch streamed := choice == 1; {
	case lost && !streamed:
		return lines * machine.SavedLine
	case streamed && !lost:
		return lines * machine.MissedLine
	}
	return 0
}

func (x streaming) apply(b *builder, out int, choice int64) {
	if choice == 1 && b.err == nil {
		b.do(b.s.Stream(out))
	}
}

// stream notes where the nest's results may be stored past the caches: the sums of a few products, whose tiles lie
// side by side.
func (x *tile) stream(s *schedule.Schedule, out *schedule.Stage) {
	if x.lanes < 2 || x.loadsOwn || !x.loadsShared || product(x.reduce) > streamedSteps {
		return
	}
	x.results = newStreaming(s, out)
	if x.joined != nil {
		x.joined.results = x.results
	}
}

// wholeLines refuses tiles that store a part of a line past the caches, which makes memory write it in parts.
func (x *tile) wholeLines(z sizes, p tileParameters) error {
	if line := machine.Line(x.target); p.stream == 1 && (z.tv*int64(x.target.CPU.VectorBytes)%line != 0 || x.extent(x.vec)%(z.tv*x.lanes) != 0) {
		return fmt.Errorf("space: a tile of %d vectors stores parts of lines past the caches", z.tv)
	}
	return nil
}
