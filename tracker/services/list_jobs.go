package services

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

const defaultJobsLimit = 100

// ListJobs implements tilthv1.JobServiceServer.
func (s *Services) ListJobs(_ context.Context, req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	for _, s := range req.GetStates() {
		if s == tilthv1.JobState_JOB_STATE_UNSPECIFIED {
			return nil, invalid("states", "holds %v", s)
		}
	}
	if token := req.GetPageToken(); token != "" && !state.IsJobID(token) {
		return nil, strangeToken(token)
	}
	response, err := s.listJobs(req)
	if err == nil {
		s.engine.Read(func(m *state.Machine) { m.AddWaits(false, response.GetJobs()...) })
	}
	return response, err
}

func (s *Services) listJobs(req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	if req.GetPageSize() == 0 {
		return s.someJobs(req)
	}
	jobs, next, err := s.engine.Store().Jobs(records.JobQuery{
		States: req.GetStates(), Before: req.GetPageToken(), Most: int(req.GetPageSize()), MostBytes: mostListBytes,
	})
	return s.listed(jobs, next, err)
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
func (s *Services) someJobs(req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	q := records.JobQuery{States: req.GetStates(), Before: req.GetPageToken(), Most: int(req.GetLimit()), MostBytes: mostListBytes}
	if q.Most == 0 {
		q.Most = defaultJobsLimit
	}
	jobs, next, err := s.engine.Store().Jobs(q)
	for err == nil && next != "" && len(jobs) == 0 { // so many others were passed over
		q.Before = next
		jobs, next, err = s.engine.Store().Jobs(q)
	}
	return s.listed(jobs, next, err)
}
