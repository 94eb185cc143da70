package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReportRun implements tilthv1.RunServiceServer.
func (s *Services) ReportRun(ctx context.Context, req *tilthv1.ReportRunRequest) (*tilthv1.ReportRunResponse, error) {
	if err := checkRunReport(req); err != nil {
		return nil, err
	}
	err := s.reportOnJob(ctx, "ReportRun", req.GetLease(), func(c *state.Change) (bool, error) { return c.ReportRun(req) })
	return &tilthv1.ReportRunResponse{}, err
}

func checkRunReport(req *tilthv1.ReportRunRequest) error {
	said := 0
	if req.GetResult() != nil {
		said++
	}
	if req.GetFailure() != "" {
		said++
	}
	if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		said++
		if !records.InfraFault(class) {
			return invalid("infra_error", "is %v, not BUILD_INFRA, DEVICE_INFRA or FARM_INFRA", class)
		}
	}
	if said != 1 {
		return invalid("result", "and failure and infra_error: %d of them are set, not one", said)
	}
	if outputs := req.GetResult().GetOutputs(); outputs != nil {
		return checkArtifact("result.outputs", outputs)
	}
	return nil
}
