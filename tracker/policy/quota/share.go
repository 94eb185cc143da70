package quota

import "cmp"

// Share is what an owner may have of the farm.
type Share struct {
	// Weight is the part of agents' time beside other owners'; 0 = 1.
	Weight float64
	// Jobs bounds the jobs that have not ended, paused ones included; 0 = no limit.
	Jobs int
	// Trials bounds the trials that all of these may come to: those of their budgets, or, of jobs whose budget is time
	// alone, those proposed; 0 = no limit.
	Trials int
	// ArtifactBytes bounds the artifacts that wait for a runner or are with one; 0 = no limit. At the limit nothing
	// more is built, so that it is exceeded by what was being built at most.
	ArtifactBytes int64
	// StoredBytes bounds specifications and events of all jobs, those that have ended included: of these the oldest
	// are dropped to make room; 0 = no limit.
	StoredBytes int64
}

// Shares are those of all owners.
type Shares struct {
	// Default is that of an owner without one, and has what an owner's own leaves 0.
	Default Share
	// Owners have shares of their own, by name.
	Owners map[string]Share
}

// Of is an owner's share.
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
