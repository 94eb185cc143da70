package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

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
