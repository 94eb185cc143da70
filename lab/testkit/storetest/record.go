package storetest

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Record returns a valid record with a candidate of its own; latency 0 makes it a failure.
func Record(target, workload string, second int64, latency float64) *tilthv1.Record {
	trace := fmt.Appendf(nil, "trace %d", second)
	m := &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)},
		Error:     tilthv1.ErrorClass_ERROR_CLASS_CRASH,
		Device:    "board-1",
		At:        timestamppb.New(time.Unix(second, 0)),
	}
	if latency > 0 {
		m.Error = tilthv1.ErrorClass_ERROR_CLASS_NONE
		m.SamplesSeconds = []float64{latency}
		m.LatencySeconds = latency
	}
	return &tilthv1.Record{
		Target:         target,
		Workload:       []byte(workload),
		WorkloadDigest: records.Digest([]byte(workload)),
		Measurement:    m,
	}
}

// Measured returns a verified measurement of a candidate at a second. ratio is the calibration time relative to the
// best known.
func Measured(candidate string, second int64, ratio float64, samples ...float64) *tilthv1.Measurement {
	r := Record("t", "w", second, 1).GetMeasurement()
	r.Candidate = &tilthv1.Candidate{Trace: []byte(candidate), Digest: records.Digest([]byte(candidate))}
	r.SamplesSeconds, r.LatencySeconds, r.CalibrationRatio = samples, samples[0], ratio
	return r
}

// Add adds records in one write.
func Add(t *testing.T, s records.Store, rs ...*tilthv1.Record) {
	t.Helper()
	w := &records.Write{}
	for _, r := range rs {
		w.AddRecord(r)
	}
	if err := s.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// List returns the matching records.
func List(t *testing.T, s records.Store, target, workload string) (out []*tilthv1.Record) {
	t.Helper()
	err := s.List(t.Context(), target, workload, func(r *tilthv1.Record) error {
		out = append(out, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
