package policy

import "cmp"

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
