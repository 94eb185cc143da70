package rpc

import (
	"context"
	"math"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReportCalibration implements tilthv1.DeviceServiceServer.
func (s *Services) ReportCalibration(ctx context.Context, req *tilthv1.ReportCalibrationRequest) (*tilthv1.ReportCalibrationResponse, error) {
	if err := checkCalibration(req.GetReport()); err != nil {
		return nil, err
	}
	err := s.tryUpdate(ctx, func(c *state.Change) error { return c.Calibrate(req.GetSession(), req.GetReport()) })
	return &tilthv1.ReportCalibrationResponse{}, err
}

func checkCalibration(r *tilthv1.CalibrationReport) error {
	if err := checkName("report.kernels", r.GetKernels()); err != nil {
		return err
	}
	if err := checkSamples("report.compute_seconds", r.GetComputeSeconds()); err != nil {
		return err
	}
	return checkSamples("report.memory_seconds", r.GetMemorySeconds())
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
