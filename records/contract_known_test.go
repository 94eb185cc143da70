package records_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
)

func knownSumsUpAWorkloadOnATarget(t *testing.T, k storeKind) {
	db := fresh(t, k)
	first, again := storetest.Record("cpu", "conv", 1, 0.004), storetest.Record("cpu", "conv", 1, 0.005)
	again.Measurement.At = timestamppb.New(time.Unix(9, 0))
	fast := storetest.Record("cpu", "conv", 2, 0.001)
	fast.Measurement.Candidate.Numerics = "default"
	failed := storetest.Record("cpu", "conv", 3, 0)
	storetest.Add(t, db, first, again, fast, failed, storetest.Record("cpu", "pool", 4, 0.0001), storetest.Record("other", "conv", 5, 0.0002))
	conv, digest := first.GetWorkloadDigest(), first.GetMeasurement().GetCandidate().GetDigest()
	got, err := db.Known("cpu", conv, "", digest, 100)
	if err != nil || got.Trials != 4 || got.CandidateSeconds != 0.005 || !proto.Equal(got.Best, fast.GetMeasurement()) {
		t.Errorf("any level: %+v, %v", got, err)
	}
	got, err = db.Known("cpu", conv, "strict", failed.GetMeasurement().GetCandidate().GetDigest(), 100)
	if err != nil || got.Trials != 4 || got.CandidateSeconds != 0 || !proto.Equal(got.Best, again.GetMeasurement()) {
		t.Errorf("strict, and a candidate that failed: %+v, %v", got, err)
	}
	if got, err := db.Known("cpu", records.Digest([]byte("none")), "", digest, 100); err != nil || got != (records.Known{}) {
		t.Errorf("an unknown workload: %+v, %v", got, err)
	}
	if _, err := db.Known("cpu", conv, "sloppy", "", 100); !errors.Is(err, records.ErrInvalid) {
		t.Errorf("an unknown level: %v", err)
	}
}
