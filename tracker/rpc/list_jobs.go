package rpc

import (
	"cmp"
	"context"

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
		return nil, invalidPageToken(token)
	}
	response, err := s.listJobs(viewerOf(ctx), req)
	if err == nil {
		s.coordinator.Read(func(m *state.Machine) { m.AddWaits(false, response.GetJobs()...) })
	}
	return response, err
}

// listJobs returns a page of jobs. Requests without pagination get the newest jobs that fit one message.
func (s *Services) listJobs(v viewer, req *tilthv1.ListJobsRequest) (*tilthv1.ListJobsResponse, error) {
	q := records.JobQuery{States: req.GetStates(), Before: req.GetPageToken(), Max: int(req.GetPageSize()), MaxBytes: maxListBytes}
	if q.Max == 0 {
		q.Max = cmp.Or(int(req.GetLimit()), defaultJobsLimit)
	}
	if !v.all {
		q.Sees = v.sees
	}
	jobs, next, err := s.coordinator.Store().Jobs(q)
	if err != nil {
		return nil, StoreError(err)
	}
	response := &tilthv1.ListJobsResponse{Jobs: jobs, NextPageToken: next}
	s.coordinator.Read(func(m *state.Machine) { response.Missing = m.Missing() })
	return response, nil
}
