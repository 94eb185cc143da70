package tracker

import (
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
)

// checkQuota refuses a job, of which so many bytes are stored, that is more than its owner may have.
func (t *Tracker) checkQuota(spec *tilthv1.JobSpec, bytes int64) error {
	owner := spec.GetOwner()
	share, has := t.cfg.Shares.Of(owner), t.usageOf(owner)
	if x := share.Job(owner, has, int(spec.GetBudget().GetTrials())); x != nil {
		return t.overQuota(x)
	}
	return t.overQuota(share.MoreStored(owner, has, bytes))
}

// checkCandidatesQuota refuses candidates that are more than the job's owner may have.
func (t *Tracker) checkCandidatesQuota(j *job, candidates []*tilthv1.Candidate) error {
	owner := j.spec.GetOwner()
	share, has := t.cfg.Shares.Of(owner), t.usageOf(owner)
	if x := share.MoreTrials(owner, has, j.claimMore(len(candidates))); x != nil {
		return t.overQuota(x)
	}
	return t.overQuota(share.MoreStored(owner, has, candidateBytes(candidates)))
}

// mayBuild says whether an owner's batches may be built now.
func (t *Tracker) mayBuild(owner string) bool {
	return t.cfg.Shares.Of(owner).MayBuild(t.usageOf(owner))
}

func (t *Tracker) overQuota(x *quota.Exceeded) error {
	if x == nil {
		return nil
	}
	t.metrics.refused.WithLabelValues("quota_" + x.Of).Inc()
	return wire.Refuse(codes.ResourceExhausted, wire.ReasonQuota, "%s", x.Text)
}
