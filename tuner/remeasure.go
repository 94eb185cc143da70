package tuner

import (
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// remeasure returns a batch for the first task with a doubtful best candidate, one that was measured while its device
// changed: the best candidate and its rivals are measured once more, in turns. It ignores an exhausted budget, because
// a wrong best candidate is worse than a few extra trials. It returns nil if there is no such task.
func (j *job) remeasure() *batch {
	for _, t := range j.tasks {
		if t.doubt == nil {
			continue
		}
		best := t.doubt.GetCandidate()
		list := []*tilthv1.Candidate{best}
		for _, r := range t.rivals.list {
			if r.candidate.GetDigest() != best.GetDigest() && len(list) < maxFinalists {
				list = append(list, r.candidate)
			}
		}
		return &batch{task: t, finalists: list, remeasured: t.doubt.GetReason()}
	}
	return nil
}

// replace replaces a rival's older measurements with a new one. A failed measurement removes the rival.
func (r *rivals) replace(m *tilthv1.Measurement) {
	r.list = slices.DeleteFunc(r.list, func(o rival) bool { return o.candidate.GetDigest() == m.GetCandidate().GetDigest() })
	r.add(m)
}
