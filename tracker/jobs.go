package tracker

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const defaultJobsLimit = 100

// GetJob implements tilthv1.JobServiceServer. It answers from the store, so it never tells what could still be lost.
func (t *Tracker) GetJob(_ context.Context, req *tilthv1.GetJobRequest) (*tilthv1.GetJobResponse, error) {
	j, err := t.db.Job(req.GetJobId())
	if errors.Is(err, records.ErrNotFound) {
		return nil, notFound("job", req.GetJobId())
	}
	if err != nil {
		return nil, storeError(err)
	}
	t.addWaits(true, j)
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tilthv1.GetJobResponse{Job: j, Outage: t.outageShown()}, nil
}

// ListJobs implements tilthv1.JobServiceServer.
func (t *Tracker) ListJobs(_ context.Context, req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	for _, s := range req.GetStates() {
		if s == tilthv1.JobState_JOB_STATE_UNSPECIFIED {
			return nil, invalid("states", "holds %v", s)
		}
	}
	if token := req.GetPageToken(); token != "" && !isJobID(token) {
		return nil, strangeToken(token)
	}
	response, err := t.listJobs(req)
	if err == nil {
		t.addWaits(false, response.GetJobs()...)
	}
	return response, err
}

func (t *Tracker) listJobs(req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	if req.GetPageSize() == 0 {
		return t.someJobs(req)
	}
	jobs, next, err := t.db.Jobs(records.JobQuery{
		States: req.GetStates(), Before: req.GetPageToken(), Most: int(req.GetPageSize()), MostBytes: mostListBytes,
	})
	return t.listed(jobs, next, err)
}

// listed is a page of jobs.
func (t *Tracker) listed(jobs []*tilthv1.Job, next string, err error) (*tilthv1.ListJobsResponse, error) {
	if err != nil {
		return nil, storeError(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tilthv1.ListJobsResponse{Jobs: jobs, NextPageToken: next, Missing: t.missing()}, nil
}

// someJobs answers who does not ask for pages: with the newest jobs, as many as one message takes.
func (t *Tracker) someJobs(req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	q := records.JobQuery{States: req.GetStates(), Before: req.GetPageToken(), Most: int(req.GetLimit()), MostBytes: mostListBytes}
	if q.Most == 0 {
		q.Most = defaultJobsLimit
	}
	jobs, next, err := t.db.Jobs(q)
	for err == nil && next != "" && len(jobs) == 0 { // so many others were passed over
		q.Before = next
		jobs, next, err = t.db.Jobs(q)
	}
	return t.listed(jobs, next, err)
}

// CancelJob implements tilthv1.JobServiceServer.
func (t *Tracker) CancelJob(ctx context.Context, req *tilthv1.CancelJobRequest) (*tilthv1.CancelJobResponse, error) {
	err := t.update(ctx, func(c *change) error {
		if j := c.jobs[req.GetJobId()]; j != nil {
			c.end(j, tilthv1.JobState_JOB_STATE_CANCELLED, req.GetReason())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	got, err := t.GetJob(ctx, &tilthv1.GetJobRequest{JobId: req.GetJobId()})
	if err != nil {
		return nil, err
	}
	return &tilthv1.CancelJobResponse{Job: got.GetJob()}, nil
}

// storeError reports a store that cannot be read.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	return status.Errorf(codes.Internal, "read the records file: %v", err)
}
