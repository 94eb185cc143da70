package records

import (
	"bytes"
	"iter"
	"slices"

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

// Scan sets the latency if the row is the latest verified record of the candidate. Rows must come newest first. Most
// rows are ruled out by a byte comparison, without decoding.
func (k *Known) Scan(row []byte, candidate string) error {
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

// Bests holds the best record of a group for each level of numerics.
type Bests [Levels]Best

// Best is a best record: its key and the gist of its measurement, which is nil without a record.
type Best struct {
	Key         Key
	Measurement *tilthv1.Measurement
}

// Offer makes a verified record the best of every level that allows it and whose best it supersedes. Ties go to the
// earlier record. changed reports whether any level changed.
func (b *Bests) Offer(key Key, m *tilthv1.Measurement) (changed bool) {
	needs, ok := Level(m.GetCandidate().GetNumerics())
	if !ok {
		return false
	}
	for level := needs; level < Levels; level++ {
		if best := &b[level]; best.Measurement == nil || Supersedes(m, best.Measurement) {
			*best = Best{Key: key, Measurement: Essentials(m)}
			changed = true
		}
	}
	return changed
}

// Has reports whether a record is the best at some level.
func (b *Bests) Has(key Key) bool {
	return slices.ContainsFunc(b[:], func(best Best) bool { return best.Measurement != nil && best.Key == key })
}

// HasCandidate reports whether a record of a candidate is the best at some level.
func (b *Bests) HasCandidate(digest string) bool {
	return slices.ContainsFunc(b[:], func(best Best) bool {
		return best.Measurement != nil && best.Measurement.GetCandidate().GetDigest() == digest
	})
}

// Choose finds the bests among all records of a group, given oldest first. It ignores candidates that were refuted. It
// iterates twice.
func Choose(all iter.Seq2[Key, *tilthv1.Measurement]) (b Bests) {
	refuted := map[string]bool{}
	for _, m := range all {
		if Disqualifies(m) {
			refuted[m.GetCandidate().GetDigest()] = true
		}
	}
	for key, m := range all {
		if Verified(m) && !refuted[m.GetCandidate().GetDigest()] {
			b.Offer(key, m)
		}
	}
	return b
}

// Essentials returns the fields of a measurement that Supersedes and look-ups need.
func Essentials(m *tilthv1.Measurement) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate:      &tilthv1.Candidate{Digest: m.GetCandidate().GetDigest(), Numerics: m.GetCandidate().GetNumerics()},
		Error:          m.GetError(),
		LatencySeconds: m.GetLatencySeconds(), SamplesSeconds: m.GetSamplesSeconds(), CalibrationRatio: m.GetCalibrationRatio(),
		Device: m.GetDevice(), At: m.GetAt(), Remeasured: m.GetRemeasured(), Suspected: m.GetSuspected(),
		EnergyJoules: m.GetEnergyJoules(), PreferredSeconds: m.GetPreferredSeconds(), PreferredTo: m.GetPreferredTo(),
	}
}
