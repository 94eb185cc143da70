package records_test

import (
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Trials that are recorded together share a row. Readers of events must not notice.
func eventsAreReadFromAnyAndUpToAny(t *testing.T, k storeKind) {
	db := fresh(t, k)
	w := &records.Write{}
	state := func(sequence uint64) *tilthv1.JobEvent {
		return &tilthv1.JobEvent{Sequence: sequence, Event: &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{}}}
	}
	const trials = 5 // sequences 2 to 6, between two state changes
	var together []*tilthv1.JobEvent
	for i := range trials {
		together = append(together, &tilthv1.JobEvent{Sequence: uint64(2 + i), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			TaskIndex: 3, BatchId: "job/0", BestSeconds: float64(trials - i), PredictedSeconds: float32(i),
			Measurement: storetest.Record("cpu", "conv", int64(i), float64(trials-i)).GetMeasurement(),
		}}})
	}
	w.AppendEvent("job", state(1))
	w.AppendTrials("job", "cpu", &tilthv1.TaskSpec{WorkloadDigest: "conv"}, together)
	w.AppendEvent("job", state(2+trials))
	w.AppendEvent("job-2", state(1))
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for from := uint64(0); from <= 3+trials; from++ {
		for limit := range 3 + trials {
			events, err := db.Events("job", from, limit)
			if err != nil {
				t.Fatal(err)
			}
			first := max(1, from)
			if want := min(limit, int(2+trials-first)+1); len(events) != max(0, want) {
				t.Fatalf("from %d on there are %d events of %d, want %d", from, len(events), limit, want)
			}
			for i, e := range events {
				if e.GetSequence() != first+uint64(i) {
					t.Fatalf("event %d from %d on has sequence %d", i, from, e.GetSequence())
				}
				trial := e.GetTrial()
				if trial == nil != (e.GetSequence() == 1 || e.GetSequence() == 2+trials) {
					t.Fatalf("event %v", e)
				}
				if trial != nil && (trial.GetTaskIndex() != 3 || trial.GetBatchId() != "job/0" || trial.GetMeasurement().GetLatencySeconds() != trial.GetBestSeconds() ||
					trial.GetPredictedSeconds() != float32(e.GetSequence()-2)) {
					t.Fatalf("trial %v", trial)
				}
			}
		}
	}
}
