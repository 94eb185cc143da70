package rpc

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ProposeBatch implements tilthv1.SearchServiceServer.
func (s *Services) ProposeBatch(ctx context.Context, req *tilthv1.ProposeBatchRequest) (*tilthv1.ProposeBatchResponse, error) {
	if err := checkCandidates(req.GetCandidates()); err != nil {
		return nil, err
	}
	if s := req.GetSearchSeconds(); !records.ValidSeconds(s) {
		return nil, invalid("search_seconds", "is %v", s)
	}
	if err := cmp.Or(checkMode(req), checkPredictions(req)); err != nil {
		return nil, err
	}
	proposal, err := result(ctx, s, func(c *state.Change) (state.Proposal, error) { return c.Propose(req) })
	if err != nil {
		return nil, err
	}
	if proposal.Closed == "" {
		return proposal.ProposeBatchResponse, nil
	}
	id, row, err := s.coordinator.Store().ClosedProposal(proposal.Closed)
	return &tilthv1.ProposeBatchResponse{BatchId: id, FirstTrial: row.GetFirstTrial()}, StoreError(err)
}

func checkMode(req *tilthv1.ProposeBatchRequest) error {
	switch req.GetMode() {
	case tilthv1.BatchMode_BATCH_MODE_UNSPECIFIED, tilthv1.BatchMode_BATCH_MODE_SEARCH:
		return nil
	case tilthv1.BatchMode_BATCH_MODE_FINALISTS:
		if n := len(req.GetCandidates()); n > wire.MaxFinalists {
			return invalid("candidates", "are %d finalists, at most %d may take turns", n, wire.MaxFinalists)
		}
		return nil
	}
	return invalid("mode", "is %v, not SEARCH or FINALISTS", req.GetMode())
}

// checkPredictions refuses predictions that are not valid times or do not match the candidates in number.
func checkPredictions(req *tilthv1.ProposeBatchRequest) error {
	predicted := req.GetPredictedSeconds()
	if n := len(req.GetCandidates()); len(predicted) > 0 && len(predicted) != n {
		return invalid("predicted_seconds", "has %d predictions, there are %d candidates: send one for each, or none", len(predicted), n)
	}
	for i, s := range predicted {
		if !records.ValidSeconds(float64(s)) {
			return invalid("predicted_seconds", "has %v s for candidate %d", s, i)
		}
	}
	return nil
}

func checkCandidates(candidates []*tilthv1.Candidate) error {
	if len(candidates) == 0 {
		return invalid("candidates", "is empty")
	}
	seen := make(map[string]bool, len(candidates))
	for i, c := range candidates {
		switch {
		case len(c.GetTrace()) == 0:
			return invalidItem("candidates", i, "trace", "is empty")
		case !records.IsDigest(c.GetDigest(), c.GetTrace()):
			return invalidItem("candidates", i, "digest", "%q is not the sha256 of the trace", c.GetDigest())
		case !records.ValidNumerics(c.GetNumerics()):
			return invalidItem("candidates", i, "numerics", "is %q, not strict, default or fast", c.GetNumerics())
		case !records.ValidShare(c.GetMultiplications()):
			return invalidItem("candidates", i, "multiplications", "is %v, not a share of 1", c.GetMultiplications())
		case seen[c.GetDigest()]:
			return invalidItem("candidates", i, "digest", "%s is in the batch twice", c.GetDigest())
		}
		seen[c.GetDigest()] = true
	}
	return nil
}

// FinishJob implements tilthv1.SearchServiceServer.
func (s *Services) FinishJob(ctx context.Context, req *tilthv1.FinishJobRequest) (*tilthv1.FinishJobResponse, error) {
	switch req.GetState() {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED:
	default:
		return nil, invalid("state", "is %v, not DONE or FAILED", req.GetState())
	}
	err := s.reportOnJob(ctx, "FinishJob", req.GetLease(), func(c *state.Change) (bool, error) {
		return c.Finish(req.GetLease(), req.GetState(), req.GetReason()), nil
	})
	return &tilthv1.FinishJobResponse{}, err
}

// ReportModel implements tilthv1.SearchServiceServer.
func (s *Services) ReportModel(ctx context.Context, req *tilthv1.ReportModelRequest) (*tilthv1.ReportModelResponse, error) {
	if err := checkModelReport(req); err != nil {
		return nil, err
	}
	reading, err := s.reading(ctx, req)
	if err != nil {
		return nil, err
	}
	err = s.reportOnJob(ctx, "ReportModel", req.GetLease(), func(c *state.Change) (bool, error) { return c.ReportModel(reading) })
	return &tilthv1.ReportModelResponse{}, err
}

func checkModelReport(req *tilthv1.ReportModelRequest) error {
	switch said := countTrue(len(req.GetTasks()) > 0, req.GetFailure() != "", req.GetInfraMessage() != ""); {
	case said != 1:
		return invalid("tasks", "and failure and infra_message: %d of them are set, not one", said)
	case len(req.GetTasks()) > 0:
		return cmp.Or(checkTargetSpec("", req.GetTarget()), checkTasks("", req.GetTasks()))
	}
	return nil
}

// reading returns the reported model with what is known of its tasks. It skips the lookup for a lease that is no
// longer held.
func (s *Services) reading(ctx context.Context, req *tilthv1.ReportModelRequest) (*state.Reading, error) {
	var job *tilthv1.JobSpec
	s.coordinator.Read(func(m *state.Machine) { job = m.ReadBy(req.GetLease()) })
	if job == nil || len(req.GetTasks()) == 0 {
		return state.FailedReading(req), nil
	}
	spec := proto.CloneOf(job)
	spec.Target, spec.Tasks = req.GetTarget(), req.GetTasks()
	progress, err := firstProgress(ctx, s.known(privateOwner(spec)), spec)
	if err != nil {
		return nil, err
	}
	return state.NewReading(req.GetLease(), spec, progress), nil
}
