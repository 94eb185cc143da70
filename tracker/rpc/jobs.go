package rpc

import (
	"cmp"
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

// ListOwners implements tilthv1.JobServiceServer. Owners are sorted by name.
func (s *Services) ListOwners(_ context.Context, req *tilthv1.ListOwnersRequest) (*tilthv1.ListOwnersResponse, error) {
	var waiting map[string]int
	s.coordinator.Read(func(m *state.Machine) { waiting = m.Waiting() })
	owners, next, err := page(s, (*state.Machine).OwnerNames, req, func(m *state.Machine, name string) (*tilthv1.Owner, bool) {
		o := m.Owner(name, waiting)
		return o, o != nil
	})
	return &tilthv1.ListOwnersResponse{Owners: owners, NextPageToken: next}, err
}

// CheckFarm implements tilthv1.JobServiceServer.
func (s *Services) CheckFarm(_ context.Context, req *tilthv1.CheckFarmRequest) (*tilthv1.CheckFarmResponse, error) {
	spec := &tilthv1.JobSpec{
		Target: &tilthv1.TargetSpec{DeviceClass: req.GetDeviceClass(), Toolchain: req.GetToolchain()}, Tuner: req.GetTuner(),
	}
	fields := map[string]string{"device_class": req.GetDeviceClass()}
	switch {
	case req.GetRun():
		spec.Run = &tilthv1.RunSpec{Device: req.GetDevice()}
	case req.GetModel():
		spec.Model = &tilthv1.ModelSpec{}
		fields["tuner"] = req.GetTuner()
	default:
		fields["toolchain"], fields["tuner"] = req.GetToolchain(), req.GetTuner()
	}
	for field, value := range fields {
		if err := checkName(field, value); err != nil {
			return nil, err
		}
	}
	response := &tilthv1.CheckFarmResponse{}
	s.coordinator.Read(func(m *state.Machine) { response.Wait = m.CheckFarm(spec) })
	return response, nil
}
