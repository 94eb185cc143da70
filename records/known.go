package records

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Known summarizes the records of a workload on a target.
type Known struct {
	// Trials counts the examined records, including failures.
	Trials int
	// Best is the measurement of the best verified record, or nil.
	Best *tilthv1.Measurement
	// CandidateSeconds is the latest verified latency of the requested candidate, or 0.
	CandidateSeconds float64
}

// Look sets the latency if the row is the latest verified record of the candidate. Rows must come newest first. Most
// rows are ruled out by a byte comparison, without decoding.
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
