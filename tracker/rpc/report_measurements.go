package rpc

import (
	"context"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReportMeasurements implements tilthv1.MeasureServiceServer.
func (s *Services) ReportMeasurements(ctx context.Context, req *tilthv1.ReportMeasurementsRequest) (*tilthv1.ReportMeasurementsResponse, error) {
	if err := checkMeasurements(req); err != nil {
		return nil, err
	}
	err := s.report(ctx, "ReportMeasurements", req.GetLease(), func(c *state.Change) (bool, error) { return c.ReportMeasurements(req) })
	return &tilthv1.ReportMeasurementsResponse{}, err
}

func checkMeasurements(req *tilthv1.ReportMeasurementsRequest) error {
	infra := req.GetInfraError()
	if infra == tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		if len(req.GetMeasurements()) == 0 {
			return invalid("measurements", "is empty, and infra_error is not set")
		}
	} else if !records.InfraFault(infra) || infra == tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA {
		return invalid("infra_error", "is %v, not DEVICE_INFRA or FARM_INFRA", infra)
	}
	seen := make(map[string]bool, len(req.GetMeasurements()))
	for i, m := range req.GetMeasurements() {
		if err := records.ValidateOutcome(m); err != nil {
			return invalidItem("measurements", i, "", "%s", strings.TrimPrefix(err.Error(), records.ErrInvalid.Error()+": "))
		}
		if d := m.GetCandidate().GetDigest(); seen[d] {
			return invalidItem("measurements", i, "candidate", "duplicate %s", d)
		} else {
			seen[d] = true
		}
	}
	return nil
}
