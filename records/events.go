package records

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// EventPage holds the events of a look-up.
type EventPage struct {
	// From is the least sequence; Limit is the maximum number of events.
	From   uint64
	Limit  int
	Events []*tilthv1.JobEvent
	size   int
}

// Left returns the bytes of events that the page may still have.
func (p *EventPage) Left() int { return MaxEventsBytes - p.size }

// Full reports whether the page takes no more events.
func (p *EventPage) Full() bool { return len(p.Events) >= p.Limit || p.Left() <= 0 }

// Add unfolds a row into events and adds those that belong to the page; see UnfoldEvents.
func (p *EventPage) Add(row *storev1.EventRow, measurement func(key []byte) (*tilthv1.Measurement, error)) error {
	events, err := UnfoldEvents(row, measurement)
	for _, e := range events {
		if err == nil && e.GetSequence() >= p.From && !p.Full() {
			CutEvent(e)
			p.size += proto.Size(e)
			p.Events = append(p.Events, e)
		}
	}
	return err
}

// MaxEventsBytes ends a look-up of events with the event that reaches it.
const MaxEventsBytes = 8 << 20

// UnfoldEvents expands a row into events. It fetches the measurements of trials by the keys of their records;
// measurement returns nil for a pruned record.
func UnfoldEvents(row *storev1.EventRow, measurement func(key []byte) (*tilthv1.Measurement, error)) ([]*tilthv1.JobEvent, error) {
	first := row.GetEvent()
	if first.GetTrial() == nil {
		return []*tilthv1.JobEvent{first}, nil
	}
	var err error
	events := make([]*tilthv1.JobEvent, len(row.GetTrials()))
	for i, t := range row.GetTrials() {
		trial := &tilthv1.TrialRecorded{
			TaskIndex: first.GetTrial().GetTaskIndex(), BatchId: first.GetTrial().GetBatchId(), BestSeconds: t.GetBestSeconds(),
			PredictedSeconds: t.GetPredictedSeconds(),
		}
		if trial.Measurement, err = measurement(t.GetRecordKey()); err != nil {
			return nil, err
		}
		events[i] = &tilthv1.JobEvent{Sequence: first.GetSequence() + uint64(i), At: first.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: trial}}
	}
	return events, nil
}

// checksumBytes is the capacity reserved behind an encoded row, so that a store can append a checksum without copying.
const checksumBytes = 4

// Encode encodes a row, with spare capacity for a checksum. It panics if m cannot be encoded, which only happens for
// invalid UTF-8; the wire has rejected that earlier.
func Encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, proto.Size(m)+checksumBytes), m)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", m, err))
	}
	return b
}
