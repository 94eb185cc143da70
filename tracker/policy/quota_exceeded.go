// This file computes an owner's share of a farm: its weight, and limits on its jobs, trials, artifacts and stored
// bytes. It does not track jobs; callers pass in the owner's usage.

package policy

import "fmt"

// Usage is what an owner currently uses.
type Usage struct {
	// Open jobs, and the trials that they may reach.
	Jobs, Trials int
	// ArtifactBytes is the size of the artifacts of batches that wait for a runner or are with one.
	ArtifactBytes int64
	// StoredBytes is the size of the specifications and events of open jobs.
	StoredBytes int64
}

// QuotaExceeded describes a limit that a request would exceed.
type QuotaExceeded struct {
	// Of names the limit: jobs, trials, artifacts or stored.
	Of string
	// Text states the usage, the limit and the remedy.
	Text string
}

func exceeded(of, format string, args ...any) *QuotaExceeded {
	return &QuotaExceeded{Of: of, Text: fmt.Sprintf(format, args...)}
}

// Job returns the limit that one more job with a budget of trials would exceed, or nil.
func (s Share) Job(owner string, has Usage, trials int) *QuotaExceeded {
	switch {
	case s.Jobs > 0 && has.Jobs >= s.Jobs:
		return exceeded("jobs", "owner %q has %d jobs that have not ended, and may have %d: wait for one to end, or cancel one",
			owner, has.Jobs, s.Jobs)
	case s.Trials > 0 && has.Trials+trials > s.Trials:
		return exceeded("trials", "owner %q has jobs of %d trials, and may have %d in all: ask for at most %d, or wait for a job to end",
			owner, has.Trials, s.Trials, max(s.Trials-has.Trials, 0))
	case !s.MayBuild(has):
		return exceeded("artifacts", "owner %q has %d bytes of artifacts waiting for devices, and may have %d: wait for some to be measured",
			owner, has.ArtifactBytes, s.ArtifactBytes)
	}
	return nil
}

// MoreTrials returns the limit that more trials would exceed, or nil.
func (s Share) MoreTrials(owner string, has Usage, more int) *QuotaExceeded {
	if s.Trials > 0 && more > 0 && has.Trials+more > s.Trials {
		return exceeded("trials", "owner %q has jobs of %d trials, and may have %d in all: give jobs smaller budgets, or wait for one to end",
			owner, has.Trials, s.Trials)
	}
	return nil
}

// MoreStored returns the limit that more bytes of specifications or candidates would exceed, or nil. Ended jobs do not
// count, since they are dropped to make room.
func (s Share) MoreStored(owner string, has Usage, more int64) *QuotaExceeded {
	if s.StoredBytes > 0 && has.StoredBytes+more > s.StoredBytes {
		return exceeded("stored", "owner %q has open jobs of %d stored bytes, wants %d more, and may have %d: wait for one to end, or cancel one",
			owner, has.StoredBytes, more, s.StoredBytes)
	}
	return nil
}

// MayBuild reports whether the owner's batches may be built now. At the artifact limit they wait until others are
// measured.
func (s Share) MayBuild(has Usage) bool {
	return s.ArtifactBytes == 0 || has.ArtifactBytes < s.ArtifactBytes
}
