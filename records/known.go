package records

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// Known is what the records say of a workload on a target.
type Known struct {
	// Trials counts the records, failures included, as far as they were looked at.
	Trials int
	// Best is the best verified record's measurement; nil when there is none.
	Best *tilthv1.Measurement
	// CandidateSeconds is the last verified latency of the candidate asked for; 0 = none.
	CandidateSeconds float64
}
