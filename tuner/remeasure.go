package tuner

import (
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// remeasure is a batch for the first task whose best is in doubt, since its device changed while it was measured: the
// best and its rivals take turns once more. It is not kept waiting for a budget that is spent: a best that is none is
// worse than a few trials more. nil when no task is in doubt.
func (j *job) remeasure() *batch {
	for _, t := range j.tasks {
		if t.doubt == nil {
			continue
		}
		best := t.doubt.GetCandidate()
		list := []*tilthv1.Candidate{best}
		for _, r := range t.rivals.list {
			if r.candidate.GetDigest() != best.GetDigest() && len(list) < mostFinalists {
				list = append(list, r.candidate)
			}
		}
		return &batch{task: t, finalists: list, remeasured: t.doubt.GetReason()}
	}
	return nil
}

// replace puts a new measurement in the place of a rival's older ones; one that went wrong takes the rival away.
func (r *rivals) replace(m *tilthv1.Measurement) {
	r.list = slices.DeleteFunc(r.list, func(o rival) bool { return o.candidate.GetDigest() == m.GetCandidate().GetDigest() })
	r.add(m)
}
