package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// checkQuota returns an error if a job of that many stored bytes exceeds its owner's quota.
func (m *Machine) checkQuota(spec *tilthv1.JobSpec, bytes int64) error {
	owner := spec.GetOwner()
	share, has := m.cfg.Shares.Of(owner), m.usageOf(owner)
	if x := share.Job(owner, has, int(spec.GetBudget().GetTrials())); x != nil {
		return overQuota(x)
	}
	return overQuota(share.MoreStored(owner, has, bytes))
}

// checkCandidatesQuota returns an error if the candidates exceed the owner's quota.
func (m *Machine) checkCandidatesQuota(j *job, candidates []*tilthv1.Candidate) error {
	owner := j.spec.GetOwner()
	share, has := m.cfg.Shares.Of(owner), m.usageOf(owner)
	if x := share.MoreTrials(owner, has, j.claimMore(len(candidates))); x != nil {
		return overQuota(x)
	}
	return overQuota(share.MoreStored(owner, has, candidateBytes(candidates)))
}

// mayBuild reports whether batches of an owner may be built now.
func (m *Machine) mayBuild(owner string) bool {
	return m.cfg.Shares.Of(owner).MayBuild(m.usageOf(owner))
}

func overQuota(x *policy.QuotaExceeded) error {
	if x == nil {
		return nil
	}
	return RefuseOf(OverQuota, x.Of, "%s", x.Text)
}
