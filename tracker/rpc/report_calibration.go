package rpc

import (
	"cmp"
	"context"
	"math"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReportCalibration implements tilthv1.DeviceServiceServer.
func (s *Services) ReportCalibration(ctx context.Context, req *tilthv1.ReportCalibrationRequest) (*tilthv1.ReportCalibrationResponse, error) {
	r := req.GetReport()
	if err := cmp.Or(checkName("report.kernels", r.GetKernels()),
		checkSamples("report.compute_seconds", r.GetComputeSeconds()), checkSamples("report.memory_seconds", r.GetMemorySeconds())); err != nil {
		return nil, err
	}
	err := s.tryUpdate(ctx, func(c *state.Change) error { return c.Calibrate(req.GetSession(), r) })
	return &tilthv1.ReportCalibrationResponse{}, err
}

func checkSamples(field string, samples []float64) error {
	if len(samples) == 0 {
		return invalid(field, "is empty")
	}
	for _, s := range samples {
		if !(s > 0) || math.IsInf(s, 1) {
			return invalid(field, "holds %v", s)
		}
	}
	return nil
}
