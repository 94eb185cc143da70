package rpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// report runs a report under the batch's lease. A report that was accepted before is accepted again and changes
// nothing.
func (s *Services) report(ctx context.Context, call string, token *tilthv1.LeaseToken, step func(*state.Change) (known bool, err error)) error {
	known, err := result(ctx, s, step)
	if err != nil || known {
		return err
	}
	row, err := s.coordinator.Store().ClosedBatch(token.GetSubject())
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return StoreError(err)
	}
	if !state.Holds(row.GetSettled(), token) {
		return s.status(state.Stale(call, token))
	}
	s.repeated(call)
	return nil
}

// reportOnJob runs a report under the job's lease. A report under the lease that finished the job is a repetition.
func (s *Services) reportOnJob(ctx context.Context, call string, token *tilthv1.LeaseToken, step func(*state.Change) (bool, error)) error {
	held, err := result(ctx, s, step)
	if err != nil || held {
		return err
	}
	if !s.finishedBy(token) {
		return s.status(state.Stale(call, token))
	}
	s.repeated(call)
	return nil
}

// finishedBy reports whether an ended job was finished under this lease, so that the call is a repetition.
func (s *Services) finishedBy(token *tilthv1.LeaseToken) bool {
	row, err := s.coordinator.Store().JobRow(token.GetSubject())
	if err != nil {
		if !errors.Is(err, records.ErrNotFound) {
			s.log.Error("read job", "job", token.GetSubject(), "error", err)
		}
		return false
	}
	return proto.Equal(row.GetFinishedBy(), token)
}

// repeated counts a repeated call, whose first response was probably lost.
func (s *Services) repeated(call string) { s.counts.Observe(state.Repeated{Call: call}) }

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

// ReportRun implements tilthv1.RunServiceServer.
func (s *Services) ReportRun(ctx context.Context, req *tilthv1.ReportRunRequest) (*tilthv1.ReportRunResponse, error) {
	if err := checkRunReport(req); err != nil {
		return nil, err
	}
	err := s.reportOnJob(ctx, "ReportRun", req.GetLease(), func(c *state.Change) (bool, error) { return c.ReportRun(req) })
	return &tilthv1.ReportRunResponse{}, err
}

func checkRunReport(req *tilthv1.ReportRunRequest) error {
	class := req.GetInfraError()
	faulty := class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED
	if faulty && !records.InfraFault(class) {
		return invalid("infra_error", "is %v, not BUILD_INFRA, DEVICE_INFRA or FARM_INFRA", class)
	}
	if said := countTrue(req.GetResult() != nil, req.GetFailure() != "", faulty); said != 1 {
		return invalid("result", "and failure and infra_error: %d of them are set, not one", said)
	}
	if outputs := req.GetResult().GetOutputs(); outputs != nil {
		return checkArtifact("result.outputs", outputs)
	}
	return nil
}

// countTrue returns how many of the values are true.
func countTrue(values ...bool) (n int) {
	for _, is := range values {
		if is {
			n++
		}
	}
	return n
}
