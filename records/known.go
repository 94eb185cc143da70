package records

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Known is what the records say of a workload on a target.
type Known struct {
	// Trials counts the records, failures included, as far as they were looked at.
	Trials int
	// Best is the best verified record's measurement; nil when there is none.
	Best *tilthv1.Measurement
	// CandidateSeconds is the last verified latency of the candidate asked for; 0 = none.
	CandidateSeconds float64
}

// Look reads the latency of a record's row if it is the candidate's and the last verified one. Rows come newest first.
// Most are told apart by their bytes, undecoded.
func (k *Known) Look(row []byte, candidate string) error {
	if candidate == "" || k.CandidateSeconds > 0 || !bytes.Contains(row, []byte(candidate)) {
		return nil
	}
	r := &tilthv1.Record{}
	if err := proto.Unmarshal(row, r); err != nil {
		return err
	}
	if m := r.GetMeasurement(); m.GetCandidate().GetDigest() == candidate && m.GetLatencySeconds() > 0 {
		k.CandidateSeconds = m.GetLatencySeconds()
	}
	return nil
}
