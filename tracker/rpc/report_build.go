package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReportBuild implements tilthv1.BuildServiceServer.
func (s *Services) ReportBuild(ctx context.Context, req *tilthv1.ReportBuildRequest) (*tilthv1.ReportBuildResponse, error) {
	if err := checkBuild(req); err != nil {
		return nil, err
	}
	err := s.report(ctx, "ReportBuild", req.GetLease(), func(c *state.Change) (bool, error) { return c.ReportBuild(req) })
	return &tilthv1.ReportBuildResponse{}, err
}

func checkBuild(req *tilthv1.ReportBuildRequest) error {
	if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		if !records.InfraFault(class) || class == tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA {
			return invalid("infra_error", "is %v, not BUILD_INFRA or FARM_INFRA", class)
		}
		return nil
	}
	built := false
	for i, o := range req.GetOutcomes() {
		if o.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE && !records.CandidateFault(o.GetError()) {
			return invalidItem("outcomes", i, "error", "is %v", o.GetError())
		}
		if s := o.GetBuildSeconds(); !records.ValidSeconds(s) {
			return invalidItem("outcomes", i, "build_seconds", "is %v", s)
		}
		built = built || o.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE
	}
	if built != (len(req.GetArtifacts()) > 0) {
		return invalid("artifacts", "are %d, candidates built: %v", len(req.GetArtifacts()), built)
	}
	for i, a := range req.GetArtifacts() {
		if !records.ValidDigest(a.GetDigest()) {
			return invalidItem("artifacts", i, "digest", "%q is not a sha256", a.GetDigest())
		}
	}
	return nil
}
