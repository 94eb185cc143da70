package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// control changes an open job with step and returns the stored result.
func (s *Services) control(ctx context.Context, id string, step func(*state.Change) (ok bool, err error)) (*tilthv1.Job, error) {
	open, err := result(ctx, s, step)
	if err != nil {
		return nil, err
	}
	j, err := s.coordinator.Store().Job(id)
	switch {
	case errors.Is(err, records.ErrNotFound):
		return nil, notFound("job", id)
	case err != nil:
		return nil, StoreError(err)
	case !open:
		return nil, status.Errorf(codes.FailedPrecondition, "job %s has ended: submit it again", id)
	}
	return j, nil
}

// PauseJob implements tilthv1.JobServiceServer.
func (s *Services) PauseJob(ctx context.Context, req *tilthv1.PauseJobRequest) (*tilthv1.PauseJobResponse, error) {
	j, err := s.control(ctx, req.GetJobId(), func(c *state.Change) (bool, error) { return c.Pause(req.GetJobId(), req.GetReason()), nil })
	return &tilthv1.PauseJobResponse{Job: j}, err
}

// ResumeJob implements tilthv1.JobServiceServer.
func (s *Services) ResumeJob(ctx context.Context, req *tilthv1.ResumeJobRequest) (*tilthv1.ResumeJobResponse, error) {
	j, err := s.control(ctx, req.GetJobId(), func(c *state.Change) (bool, error) { return c.Resume(req.GetJobId(), req.GetReason()), nil })
	return &tilthv1.ResumeJobResponse{Job: j}, err
}

// CancelJob implements tilthv1.JobServiceServer.
func (s *Services) CancelJob(ctx context.Context, req *tilthv1.CancelJobRequest) (*tilthv1.CancelJobResponse, error) {
	err := s.update(ctx, func(c *state.Change) { c.Cancel(req.GetJobId(), req.GetReason()) })
	if err != nil {
		return nil, err
	}
	got, err := s.GetJob(ctx, &tilthv1.GetJobRequest{JobId: req.GetJobId()})
	return &tilthv1.CancelJobResponse{Job: got.GetJob()}, err
}

// DeleteJob implements tilthv1.JobServiceServer. For a job that the caller cannot see, it changes nothing and answers
// as if the job were already gone.
func (s *Services) DeleteJob(ctx context.Context, req *tilthv1.DeleteJobRequest) (*tilthv1.DeleteJobResponse, error) {
	v, id := viewerOf(ctx), req.GetJobId()
	remove := func(c *state.Change) error { return c.Delete(id) }
	if !v.all {
		owner, err := s.jobOwner(id)
		if err != nil && status.Code(err) != codes.NotFound {
			return nil, err
		}
		if !v.sees(owner) {
			remove = func(c *state.Change) error { return c.DeleteGone(id) }
		}
	}
	return &tilthv1.DeleteJobResponse{}, s.tryUpdate(ctx, remove)
}

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
