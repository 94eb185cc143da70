package tracker

import (
	"cmp"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ProposeBatch implements tilthv1.SearchServiceServer.
func (t *Tracker) ProposeBatch(ctx context.Context, req *tilthv1.ProposeBatchRequest) (*tilthv1.ProposeBatchResponse, error) {
	if err := checkCandidates(req.GetCandidates()); err != nil {
		return nil, err
	}
	if s := req.GetSearchSeconds(); !records.ValidSeconds(s) {
		return nil, invalid("search_seconds", "is %v", s)
	}
	if err := checkMode(req); err != nil {
		return nil, err
	}
	var response *tilthv1.ProposeBatchResponse
	closed := false
	var jobID string
	err := t.update(ctx, func(c *change) error {
		j, ok := c.lookUp(req.GetLease()).(*job)
		if !ok {
			return c.stale("ProposeBatch", req.GetLease())
		}
		switch n := req.GetProposal(); {
		case n < j.proposals:
			// A batch that is not in memory any more is closed, and on disk when this update returns.
			c.repeated("ProposeBatch")
			if b := j.batchOf(n); b != nil {
				response = &tilthv1.ProposeBatchResponse{BatchId: b.id, FirstTrial: b.firstTrial}
			} else {
				closed, jobID = true, j.id
			}
		case n > j.proposals:
			return status.Errorf(codes.FailedPrecondition, "proposal: is %d, the job's next is %d", n, j.proposals)
		case int(req.GetTaskIndex()) >= len(j.spec.GetTasks()):
			return invalid("task_index", "is %d, the job has %d tasks", req.GetTaskIndex(), len(j.spec.GetTasks()))
		default:
			if err := cmp.Or(c.checkCandidatesQuota(j, req.GetCandidates()), c.roomForBatch(j, req.GetCandidates())); err != nil {
				return err
			}
			response = c.propose(j, req)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !closed {
		return response, nil
	}
	id, row, err := t.db.ClosedProposal(batchID(jobID, req.GetProposal()))
	if err != nil {
		return nil, storeError(err)
	}
	return &tilthv1.ProposeBatchResponse{BatchId: id, FirstTrial: row.GetFirstTrial()}, nil
}

func (c *change) propose(j *job, req *tilthv1.ProposeBatchRequest) *tilthv1.ProposeBatchResponse {
	p := j.progress[req.GetTaskIndex()]
	b := &batch{
		id: batchIn(j.id, j.proposals, c.db.Life()), job: j, task: req.GetTaskIndex(), proposal: j.proposals, firstTrial: p.GetProposed(),
		mode: req.GetMode(), remeasured: req.GetRemeasured(), stage: storev1.Stage_STAGE_BUILD, recorded: make([]byte, len(req.GetCandidates())), open: len(req.GetCandidates()),
		candidates: req.GetCandidates(), sizeBytes: candidateBytes(req.GetCandidates()), // the tracker's from here on
	}
	for i, candidate := range b.candidates {
		candidate.Trial = b.firstTrial + uint32(i)
	}
	j.proposals++
	j.faults, j.failures, j.failedBy = 0, 0, nil
	c.owners[j.spec.GetOwner()].Trials += j.claimMore(len(b.candidates))
	p.Proposed += uint32(len(b.candidates))
	j.proposed += len(b.candidates)
	e := c.event(j)
	e.Event = &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{
		BatchId: b.id, Proposal: b.proposal, TaskIndex: b.task, Candidates: b.candidates, Mode: b.mode, SearchSeconds: req.GetSearchSeconds(),
		Remeasured: b.remeasured,
	}}
	b.eventSequence = e.GetSequence()
	c.store(j, e)
	c.write.PutProgress(j.id, b.task, p)
	c.addBatch(b)
	c.move(b)
	c.enqueue(b, false)
	return &tilthv1.ProposeBatchResponse{BatchId: b.id, FirstTrial: b.firstTrial}
}

func checkMode(req *tilthv1.ProposeBatchRequest) error {
	switch req.GetMode() {
	case tilthv1.BatchMode_BATCH_MODE_UNSPECIFIED, tilthv1.BatchMode_BATCH_MODE_SEARCH:
		return nil
	case tilthv1.BatchMode_BATCH_MODE_FINALISTS:
		if n := len(req.GetCandidates()); n > wire.MostFinalists {
			return invalid("candidates", "are %d finalists, at most %d may take turns", n, wire.MostFinalists)
		}
		return nil
	}
	return invalid("mode", "is %v, not SEARCH or FINALISTS", req.GetMode())
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
			return invalidItem("candidates", i, "multiplications", "is %v, no share of 1", c.GetMultiplications())
		case seen[c.GetDigest()]:
			return invalidItem("candidates", i, "digest", "%s is in the batch twice", c.GetDigest())
		}
		seen[c.GetDigest()] = true
	}
	return nil
}
