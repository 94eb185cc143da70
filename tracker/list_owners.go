package tracker

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListOwners implements tilthv1.JobServiceServer; owners come by name.
func (t *Tracker) ListOwners(_ context.Context, req *tilthv1.ListOwnersRequest) (*tilthv1.ListOwnersResponse, error) {
	waiting := t.waiting()
	owners, next, err := page(t, t.owners, req, func(name string, has *usage) (*tilthv1.Owner, bool) {
		may := t.cfg.Shares.Of(name)
		ended, endedBytes := t.archive.Of(name)
		return &tilthv1.Owner{
			Name: name, Weight: may.Weight,
			Jobs: uint32(has.Jobs), MaxJobs: uint32(may.Jobs),
			Trials: uint64(has.Trials), MaxTrials: uint64(may.Trials),
			ArtifactBytes: uint64(has.ArtifactBytes), MaxArtifactBytes: uint64(may.ArtifactBytes),
			Waiting: uint32(waiting[name]), EndedJobs: uint32(ended), KeepJobs: uint32(max(t.cfg.Keep.Jobs, 0)),
			StoredBytes: uint64(has.StoredBytes + endedBytes), MaxStoredBytes: uint64(may.StoredBytes),
		}, true
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.ListOwnersResponse{Owners: owners, NextPageToken: next}, nil
}

// waiting is how much of each owner's work waits for an agent.
func (t *Tracker) waiting() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := map[string]int{}
	for _, q := range t.queues {
		q.work.EachWaiting(func(owner string, items int) { n[owner] += items })
	}
	return n
}
