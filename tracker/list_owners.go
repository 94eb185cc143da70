package tracker

import (
	"context"
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListOwners implements tilthv1.JobServiceServer; owners come by name.
func (t *Tracker) ListOwners(context.Context, *tilthv1.ListOwnersRequest) (*tilthv1.ListOwnersResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	response := &tilthv1.ListOwnersResponse{}
	for _, name := range slices.Sorted(maps.Keys(t.owners)) {
		has, may := t.usageOf(name), t.cfg.Shares.Of(name)
		response.Owners = append(response.Owners, &tilthv1.Owner{
			Name: name, Weight: may.Weight,
			Jobs: uint32(has.jobs), MaxJobs: uint32(may.Jobs),
			Trials: uint64(has.trials), MaxTrials: uint64(may.Trials),
			ArtifactBytes: uint64(has.artifactBytes), MaxArtifactBytes: uint64(may.ArtifactBytes),
			Waiting: uint32(t.waiting(name)),
		})
	}
	return response, nil
}

// waiting is how much of an owner's work waits for an agent.
func (t *Tracker) waiting(owner string) (n int) {
	for _, q := range t.queues {
		n += q.work.Waiting(owner)
	}
	return n
}
