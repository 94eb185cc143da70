package rpc

import (
	"context"
	"errors"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// RetryDeadLetters implements tilthv1.JobServiceServer.
func (s *Services) RetryDeadLetters(ctx context.Context, req *tilthv1.RetryDeadLettersRequest) (*tilthv1.RetryDeadLettersResponse, error) {
	// Candidates exist only on disk, and memory may be ahead of it: update returns once everything it saw is stored.
	var seen []*tilthv1.DeadLetter
	if err := s.update(ctx, func(c *state.Change) { seen = c.DeadLetters(req.GetJobId()) }); err != nil {
		return nil, err
	}
	dead, err := s.deadBatches(seen, req.GetBatchIds())
	if err != nil {
		return nil, err
	}
	response := &tilthv1.RetryDeadLettersResponse{}
	response.Job, err = s.control(ctx, req.GetJobId(), func(c *state.Change) (ok bool, err error) {
		response.BatchIds, ok, err = c.RetryDead(req.GetJobId(), dead)
		return ok, err
	})
	return response, err
}

// deadBatches reads the batches of the dead letters with the given ids, or of all without ids.
func (s *Services) deadBatches(letters []*tilthv1.DeadLetter, ids []string) (out []state.DeadBatch, err error) {
	named := make(map[string]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	for _, letter := range letters {
		if len(ids) > 0 && !named[letter.GetBatchId()] {
			continue
		}
		stored, err := s.coordinator.Store().DeadBatch(letter.GetBatchId())
		if errors.Is(err, records.ErrNotFound) {
			continue // a letter of an older version, or a concurrent retry
		}
		if err != nil {
			return nil, StoreError(err)
		}
		out = append(out, state.DeadBatch{Letter: letter, Stored: stored})
	}
	return out, nil
}
