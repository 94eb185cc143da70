package policy

import (
	"cmp"
	"fmt"
)

// Share is an owner's weight and limits.
type Share struct {
	// Weight is the owner's share of agents' time relative to other owners; 0 means 1.
	Weight float64
	// Jobs bounds the open jobs, including paused ones; 0 means no limit.
	Jobs int
	// Trials bounds the trials that the open jobs may reach: their budgets or, for jobs with only a time budget, the
	// trials proposed. 0 means no limit.
	Trials int
	// ArtifactBytes bounds the artifacts that wait for a runner or are with one; 0 means no limit. Building stops at
	// the limit, so builds in progress may exceed it.
	ArtifactBytes int64
	// StoredBytes bounds the specifications and events of all jobs; 0 means no limit. The oldest ended jobs are
	// dropped to make room.
	StoredBytes int64
}

// Shares holds the shares of all owners.
type Shares struct {
	// Default applies to owners without a share of their own, and fills in zero fields.
	Default Share
	// Owners maps names to individual shares.
	Owners map[string]Share
}

// Of returns an owner's share.
func (s Shares) Of(owner string) Share {
	own := s.Owners[owner]
	return Share{
		Weight:        cmp.Or(own.Weight, s.Default.Weight, 1),
		Jobs:          cmp.Or(own.Jobs, s.Default.Jobs),
		Trials:        cmp.Or(own.Trials, s.Default.Trials),
		ArtifactBytes: cmp.Or(own.ArtifactBytes, s.Default.ArtifactBytes),
		StoredBytes:   cmp.Or(own.StoredBytes, s.Default.StoredBytes),
	}
}

// Usage is what an owner currently uses.
type Usage struct {
	// Jobs counts the open jobs, Trials the trials that they may reach.
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
		return exceeded("jobs", "owner %q has %d open jobs, at most %d are allowed: wait for one to end, or cancel one",
			owner, has.Jobs, s.Jobs)
	case s.Trials > 0 && has.Trials+trials > s.Trials:
		return exceeded("trials", "owner %q has jobs of %d trials, at most %d are allowed in all: ask for at most %d, or wait for a job to end",
			owner, has.Trials, s.Trials, max(s.Trials-has.Trials, 0))
	case !s.MayBuild(has):
		return exceeded("artifacts", "owner %q has %d bytes of artifacts waiting for devices, at most %d are allowed: wait for some to be measured",
			owner, has.ArtifactBytes, s.ArtifactBytes)
	}
	return nil
}

// MoreTrials returns the limit that more trials would exceed, or nil.
func (s Share) MoreTrials(owner string, has Usage, more int) *QuotaExceeded {
	if s.Trials > 0 && more > 0 && has.Trials+more > s.Trials {
		return exceeded("trials", "owner %q has jobs of %d trials, at most %d are allowed in all: give jobs smaller budgets, or wait for one to end",
			owner, has.Trials, s.Trials)
	}
	return nil
}

// MoreStored returns the limit that more bytes of specifications or candidates would exceed, or nil. Ended jobs do not
// count, since they are dropped to make room.
func (s Share) MoreStored(owner string, has Usage, more int64) *QuotaExceeded {
	if s.StoredBytes > 0 && has.StoredBytes+more > s.StoredBytes {
		return exceeded("stored", "owner %q has open jobs of %d stored bytes, wants %d more, at most %d are allowed: wait for one to end, or cancel one",
			owner, has.StoredBytes, more, s.StoredBytes)
	}
	return nil
}

// MayBuild reports whether the owner's batches may be built now. At the artifact limit they wait until others are
// measured.
func (s Share) MayBuild(has Usage) bool {
	return s.ArtifactBytes == 0 || has.ArtifactBytes < s.ArtifactBytes
}
