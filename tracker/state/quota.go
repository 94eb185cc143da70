package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// checkQuota refuses a job, of which so many bytes are stored, that is more than its owner may have.
func (m *Machine) checkQuota(spec *tilthv1.JobSpec, bytes int64) error {
	owner := spec.GetOwner()
	share, has := m.cfg.Shares.Of(owner), m.usageOf(owner)
	if x := share.Job(owner, has, int(spec.GetBudget().GetTrials())); x != nil {
		return overQuota(x)
	}
	return overQuota(share.MoreStored(owner, has, bytes))
}

// checkCandidatesQuota refuses candidates that are more than the job's owner may have.
func (m *Machine) checkCandidatesQuota(j *job, candidates []*tilthv1.Candidate) error {
	owner := j.spec.GetOwner()
	share, has := m.cfg.Shares.Of(owner), m.usageOf(owner)
	if x := share.MoreTrials(owner, has, j.claimMore(len(candidates))); x != nil {
		return overQuota(x)
	}
	return overQuota(share.MoreStored(owner, has, candidateBytes(candidates)))
}

// mayBuild says whether an owner's batches may be built now.
func (m *Machine) mayBuild(owner string) bool {
	return m.cfg.Shares.Of(owner).MayBuild(m.usageOf(owner))
}

func overQuota(x *quota.Exceeded) error {
	if x == nil {
		return nil
	}
	return refusal.Of(refusal.OverQuota, x.Of, "%s", x.Text)
}
