package quota

import "fmt"

// Usage is what an owner has of the farm.
type Usage struct {
	// Jobs that have not ended, and the trials that they may come to.
	Jobs, Trials int
	// ArtifactBytes are those of batches that wait for a runner or are with one.
	ArtifactBytes int64
	// StoredBytes are those of the specifications and events of open jobs.
	StoredBytes int64
}

// Exceeded is the bound that a request would exceed.
type Exceeded struct {
	// Of is its name: jobs, trials, artifacts or stored.
	Of string
	// Text says what the owner has, what it may have, and the remedy.
	Text string
}

func exceeded(of, format string, args ...any) *Exceeded {
	return &Exceeded{Of: of, Text: fmt.Sprintf(format, args...)}
}

// Job is the bound that one more job, with a budget of so many trials, exceeds; nil when none.
func (s Share) Job(owner string, has Usage, trials int) *Exceeded {
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

// MoreTrials is the bound that so many trials exceed beyond those that the owner's jobs may come to; nil when none.
func (s Share) MoreTrials(owner string, has Usage, more int) *Exceeded {
	if s.Trials > 0 && more > 0 && has.Trials+more > s.Trials {
		return exceeded("trials", "owner %q has jobs of %d trials, and may have %d in all: give jobs smaller budgets, or wait for one to end",
			owner, has.Trials, s.Trials)
	}
	return nil
}

// MoreStored is the bound that so many bytes of specifications or candidates exceed; nil when none. Jobs that have
// ended make room, so they do not count.
func (s Share) MoreStored(owner string, has Usage, more int64) *Exceeded {
	if s.StoredBytes > 0 && has.StoredBytes+more > s.StoredBytes {
		return exceeded("stored", "owner %q has open jobs of %d stored bytes, wants %d more, and may have %d: wait for one to end, or cancel one",
			owner, has.StoredBytes, more, s.StoredBytes)
	}
	return nil
}

// MayBuild says whether batches may be built now: at the limit of its artifacts an owner's batches wait for some to be
// measured.
func (s Share) MayBuild(has Usage) bool {
	return s.ArtifactBytes == 0 || has.ArtifactBytes < s.ArtifactBytes
}
