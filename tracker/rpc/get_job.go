package rpc

import (
	"context"
	"errors"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// GetJob implements tilthv1.JobServiceServer. It reads the store, so the answer cannot be lost in a crash.
func (s *Services) GetJob(ctx context.Context, req *tilthv1.GetJobRequest) (*tilthv1.GetJobResponse, error) {
	j, err := s.coordinator.Store().Job(req.GetJobId())
	if errors.Is(err, records.ErrNotFound) || err == nil && !viewerOf(ctx).sees(ownerOf(j.GetSpec())) {
		return nil, notFound("job", req.GetJobId())
	}
	if err != nil {
		return nil, StoreError(err)
	}
	response := &tilthv1.GetJobResponse{Job: j}
	s.coordinator.Read(func(m *state.Machine) {
		m.AddWaits(true, j)
		response.Outage = m.Outage()
	})
	return response, nil
}
