package services

import (
	"context"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

const defaultJobsLimit = 100

// ListJobs implements tilthv1.JobServiceServer.
func (s *Services) ListJobs(ctx context.Context, req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	for _, s := range req.GetStates() {
		if s == tilthv1.JobState_JOB_STATE_UNSPECIFIED {
			return nil, invalid("states", "holds %v", s)
		}
	}
	if token := req.GetPageToken(); token != "" && !state.IsJobID(token) {
		return nil, strangeToken(token)
	}
	response, err := s.listJobs(viewerOf(ctx), req)
	if err == nil {
		s.engine.Read(func(m *state.Machine) { m.AddWaits(false, response.GetJobs()...) })
	}
	return response, err
}

func (s *Services) listJobs(v viewer, req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	if req.GetPageSize() == 0 {
		return s.someJobs(v, req)
	}
	jobs, next, err := s.engine.Store().Jobs(records.JobQuery{
		States: req.GetStates(), Before: req.GetPageToken(), Most: int(req.GetPageSize()), MostBytes: mostListBytes,
	})
	return s.listed(v.only(jobs), next, err)
}

// only are those of some jobs that the viewer sees.
func (v viewer) only(jobs []*tilthv1.Job) []*tilthv1.Job {
	return slices.DeleteFunc(jobs, func(j *tilthv1.Job) bool { return !v.sees(ownerOf(j.GetSpec())) })
}

// listed is a page of jobs.
func (s *Services) listed(jobs []*tilthv1.Job, next string, err error) (*tilthv1.ListJobsResponse, error) {
	if err != nil {
		return nil, storeError(err)
	}
	response := &tilthv1.ListJobsResponse{Jobs: jobs, NextPageToken: next}
	s.engine.Read(func(m *state.Machine) { response.Missing = m.Missing() })
	return response, nil
}

// someJobs answers who does not ask for pages: with the newest jobs, as many as one message takes.
func (s *Services) someJobs(v viewer, req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	q := records.JobQuery{States: req.GetStates(), Before: req.GetPageToken(), Most: int(req.GetLimit()), MostBytes: mostListBytes}
	if q.Most == 0 {
		q.Most = defaultJobsLimit
	}
	jobs, next, err := s.engine.Store().Jobs(q)
	for jobs = v.only(jobs); err == nil && next != "" && len(jobs) == 0; jobs = v.only(jobs) { // so many others were passed over
		q.Before = next
		jobs, next, err = s.engine.Store().Jobs(q)
	}
	return s.listed(jobs, next, err)
}
