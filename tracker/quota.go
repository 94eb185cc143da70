package tracker

import (
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// checkQuota refuses a job that is more than its owner may have.
func (t *Tracker) checkQuota(spec *tilthv1.JobSpec) error {
	owner := spec.GetOwner()
	share, has := t.cfg.Shares.Of(owner), t.usageOf(owner)
	trials := int(spec.GetBudget().GetTrials())
	switch {
	case share.Jobs > 0 && has.jobs >= share.Jobs:
		return t.overQuota("jobs", "owner %q has %d jobs that have not ended, and may have %d: wait for one to end, or cancel one",
			owner, has.jobs, share.Jobs)
	case share.Trials > 0 && has.trials+trials > share.Trials:
		return t.overQuota("trials", "owner %q has jobs of %d trials, and may have %d in all: ask for at most %d, or wait for a job to end",
			owner, has.trials, share.Trials, max(share.Trials-has.trials, 0))
	case share.ArtifactBytes > 0 && has.artifactBytes >= share.ArtifactBytes:
		return t.overQuota("artifacts", "owner %q has %d bytes of artifacts waiting for devices, and may have %d: wait for some to be measured",
			owner, has.artifactBytes, share.ArtifactBytes)
	}
	return nil
}

// checkTrials refuses candidates that are more than the job's owner may have.
func (t *Tracker) checkTrials(j *job, candidates int) error {
	owner := j.spec.GetOwner()
	share, has := t.cfg.Shares.Of(owner), t.usageOf(owner)
	if more := j.claimMore(candidates); share.Trials > 0 && more > 0 && has.trials+more > share.Trials {
		return t.overQuota("trials", "owner %q has jobs of %d trials, and may have %d in all: give jobs smaller budgets, or wait for one to end",
			owner, has.trials, share.Trials)
	}
	return nil
}

// checkStored refuses more bytes of specifications or candidates than an owner's open jobs may have stored. Jobs that
// have ended make room.
func (t *Tracker) checkStored(owner string, more int64) error {
	may, has := t.cfg.Shares.Of(owner).StoredBytes, t.usageOf(owner).storedBytes
	if may > 0 && has+more > may {
		return t.overQuota("stored", "owner %q has open jobs of %d stored bytes, wants %d more, and may have %d: wait for one to end, or cancel one",
			owner, has, more, may)
	}
	return nil
}

// mayBuild says whether an owner's batches may be built now: at the limit of its artifacts they wait for some to be
// measured.
func (t *Tracker) mayBuild(owner string) bool {
	share := t.cfg.Shares.Of(owner)
	return share.ArtifactBytes == 0 || t.usageOf(owner).artifactBytes < share.ArtifactBytes
}

func (t *Tracker) overQuota(of, format string, args ...any) error {
	t.metrics.refused.WithLabelValues("quota_" + of).Inc()
	return wire.Refuse(codes.ResourceExhausted, wire.ReasonQuota, format, args...)
}
