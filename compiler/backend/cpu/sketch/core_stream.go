package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// StreamKnob selects non-temporal stores for results.
const StreamKnob = "stream"

const (
	// streamedPart is the minimum size of results for non-temporal stores, as a fraction of the last-level cache.
	// lostPart is the size beyond which the reader would miss the cache anyway.
	streamedPart, lostPart = 0.25, 0.7
)

// Streaming selects how the results of a nest are stored.
type Streaming struct {
	// bytes is the size of the results; 0 if there is no choice.
	bytes float64
}

// NewStreaming returns the choice for the last stage that a nest stores.
func NewStreaming(s *schedule.Schedule, out *schedule.Stage) Streaming {
	if !out.IsOutput || out.Tensor.Strides != nil || len(s.Consumers(out)) > 0 {
		return Streaming{}
	}
	return Streaming{float64(array.Elements(out.Tensor.Shape) * out.Tensor.DType.Bytes())}
}

// Open reports whether there is a choice.
func (x Streaming) Open(t *target.Target) bool {
	return x.bytes > 0 && x.bytes >= streamedPart*microarch.LastCache(t)
}

// Cost returns the cycles that a choice adds; 1 selects non-temporal stores.
func (x Streaming) Cost(t *target.Target, choice int64) float64 {
	lines, lost := x.bytes/float64(microarch.Line(t)), x.bytes >= lostPart*microarch.LastCache(t)
	switch streamed := choice == 1; {
	case lost && !streamed:
		return lines * microarch.SavedLine
	case streamed && !lost:
		return lines * microarch.MissedLine
	}
	return 0
}

// Apply makes the stores of a stage non-temporal if the choice is 1.
func (x Streaming) Apply(b *sketch.Builder, out int, choice int64) {
	if choice == 1 {
		b.Do(b.S.Stream(out))
	}
}
