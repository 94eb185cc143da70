package loadtest

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const (
	recordsPerWrite = 500
	// writesAtOnce bounds the pending writes in memory.
	writesAtOnce = 40
)

// fill adds records to the store as if earlier jobs had made them, a microsecond apart, cycling through all
// workloads.
func (o *Options) fill(ctx context.Context) error {
	db, err := o.openNew()
	if err != nil {
		return err
	}
	at := time.Now().Add(-time.Duration(o.Records) * time.Microsecond)
	var under []*records.Pending
	for n := 0; n < o.Records && err == nil; {
		w := &records.Write{}
		for range min(recordsPerWrite, o.Records-n) {
			w.AddRecord(o.record(n, at.Add(time.Duration(n)*time.Microsecond)))
			n++
		}
		if under = append(under, db.Commit(w)); len(under) == writesAtOnce {
			err = under[0].Wait(ctx)
			under = under[1:]
		}
	}
	for _, p := range under {
		if err == nil {
			err = p.Wait(ctx)
		}
	}
	if closing := db.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("fill the store with records: %w", err)
	}
	return nil
}

// record returns the n-th filler record.
func (o *Options) record(n int, at time.Time) *tilthv1.Record {
	latency := 0.001 + 1/float64(n+2)
	m := &tilthv1.Measurement{
		Candidate: o.candidate(fmt.Appendf(nil, "tilth-trace 1\nfilled %d\n", at.UnixNano())), Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		LatencySeconds: latency, Interval: &tilthv1.Interval{LowSeconds: latency, HighSeconds: latency, Level: 0.95},
		RunSeconds: 0.03, CalibrationRatio: 1, Device: fmt.Sprintf("board-%05d/runner", n%10000), At: timestamppb.New(at),
	}
	for range o.Samples {
		m.SamplesSeconds = append(m.SamplesSeconds, latency)
	}
	return &tilthv1.Record{Target: fingerprint, WorkloadDigest: digest(workload(n % o.Workloads)), Measurement: m}
}
