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
	j, err := s.storedJob(ctx, req.GetJobId())
	if err != nil {
		return nil, err
	}
	if j.PackageJobId, err = s.packageJob(j); err != nil {
		return nil, err
	}
	response := &tilthv1.GetJobResponse{Job: j}
	s.coordinator.Read(func(m *state.Machine) {
		m.AddWaits(true, j)
		response.Outage = m.Outage()
	})
	return response, nil
}

// storedJob returns a job that the caller may see.
func (s *Services) storedJob(ctx context.Context, id string) (*tilthv1.Job, error) {
	j, err := s.coordinator.Store().Job(id)
	if errors.Is(err, records.ErrNotFound) || err == nil && !viewerOf(ctx).sees(records.Owner{Name: j.GetSpec().GetOwner(), Private: j.GetSpec().GetPrivate()}) {
		return nil, notFound("job", id)
	}
	return j, StoreError(err)
}
