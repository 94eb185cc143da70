package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// StreamKnob chooses whether results are stored past the caches.
const StreamKnob = "stream"

const (
	// streamedPart of the last cache is how large results are that may be stored past it, lostPart how large those are
	// of which their reader finds nothing there anyway.
	streamedPart, lostPart = 0.25, 0.7
)

// Streaming is the choice of how the results of a nest are stored.
type Streaming struct {
	// bytes of results; 0 where there is no choice.
	bytes float64
}

// NewStreaming is the choice for a stage that a nest stores last.
func NewStreaming(s *schedule.Schedule, out *schedule.Stage) Streaming {
	if !out.IsOutput || out.Tensor.Strides != nil || len(s.Consumers(out)) > 0 {
		return Streaming{}
	}
	return Streaming{float64(array.Elements(out.Tensor.Shape) * out.Tensor.DType.Bytes())}
}

// Open reports whether there is a choice.
func (x Streaming) Open(t *target.Target) bool {
	return x.bytes > 0 && x.bytes >= streamedPart*machine.LastCache(t)
}

// Cost is the cycles that the choice adds; 1 stores past the caches.
func (x Streaming) Cost(t *target.Target, choice int64) float64 {
	lines, lost := x.bytes/float64(machine.Line(t)), x.bytes >= lostPart*machine.LastCache(t)
	switch streamed := choice == 1; {
	case lost && !streamed:
		return lines * machine.SavedLine
	case streamed && !lost:
		return lines * machine.MissedLine
	}
	return 0
}

// Apply stores the results of a stage past the caches if the choice is 1.
func (x Streaming) Apply(b *sketch.Builder, out int, choice int64) {
	if choice == 1 && b.Err == nil {
		b.Do(b.S.Stream(out))
	}
}
