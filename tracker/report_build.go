package tracker

import (
	"context"
	"errors"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ReportBuild implements tilthv1.BuildServiceServer.
func (t *Tracker) ReportBuild(ctx context.Context, req *tilthv1.ReportBuildRequest) (*tilthv1.ReportBuildResponse, error) {
	if err := checkBuild(req); err != nil {
		return nil, err
	}
	err := t.report(ctx, "ReportBuild", req.GetLease(), storev1.Stage_STAGE_BUILD, func(c *change, b *batch) error {
		if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
			b.settle()
			c.lose(b, class, req.GetInfraMessage())
			return nil
		}
		return c.built(b, req)
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.ReportBuildResponse{}, nil
}

// report runs a report under the batch's lease; one that was accepted before is accepted again and changes nothing.
func (t *Tracker) report(ctx context.Context, call string, token *tilthv1.LeaseToken, stage storev1.Stage, step func(*change, *batch) error) error {
	var ended bool
	err := t.update(ctx, func(c *change) error {
		if b, ok := c.lookUp(token).(*batch); ok && b.stage == stage {
			c.keepAlive(b.lease.agent)
			return step(c, b)
		}
		b := c.batches[token.GetSubject()]
		if b != nil && !holds(b.settled, token) {
			return c.stale(call, token)
		}
		if ended = b == nil; !ended {
			c.repeated(call)
		}
		return nil
	})
	if err != nil || !ended {
		return err
	}
	row, err := t.db.ClosedBatch(token.GetSubject())
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return storeError(err)
	}
	if !holds(row.GetSettled(), token) {
		return t.stale(call, token)
	}
	t.repeated(call)
	return nil
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

// built takes in a build: candidates that failed are recorded, the others go to a runner.
func (c *change) built(b *batch, req *tilthv1.ReportBuildRequest) error {
	// Before they are looked for, so that none is evicted in between.
	digests := digestsOf(req.GetArtifacts())
	c.artifacts.Pin(digests...)
	defer c.artifacts.Unpin(digests...)
	outcomes, err := c.matchOutcomes(b, req)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		b.lease.spend(c.cfg.Clock(), o.GetBuildSeconds())
	}
	builtBy := b.lease.agent.owner()
	c.succeed(b)
	b.buildSeconds = make([]float64, len(b.candidates))
	var trials []*tilthv1.JobEvent
	for i, o := range outcomes {
		if o == nil {
			continue
		}
		b.buildSeconds[i] = o.GetBuildSeconds()
		c.metrics.buildSeconds.Observe(o.GetBuildSeconds())
		if o.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
			trials = append(trials, c.recordTrial(b, i, &tilthv1.Measurement{
				Error: o.GetError(), Message: o.GetMessage(), BuildSeconds: o.GetBuildSeconds(),
			}))
		}
	}
	c.storeTrials(b, trials)
	if b.open == 0 {
		c.closeBatch(b)
		return nil
	}
	b.stage, b.failedBy = storev1.Stage_STAGE_MEASURE, nil
	b.artifacts, b.builtBy = req.GetArtifacts(), builtBy
	c.pin(b)
	c.enqueue(b, false)
	return nil
}

// matchOutcomes returns the outcomes by candidate: exactly one for each that is not recorded.
func (c *change) matchOutcomes(b *batch, req *tilthv1.ReportBuildRequest) ([]*tilthv1.BuildOutcome, error) {
	outcomes := make([]*tilthv1.BuildOutcome, len(b.candidates))
	places := b.places()
	for n, o := range req.GetOutcomes() {
		i, known := places[o.GetCandidate()]
		if !known || b.recorded[i] != 0 {
			return nil, invalidItem("outcomes", n, "candidate", "%s is not to be built in batch %s", o.GetCandidate(), b.id)
		}
		if outcomes[i] != nil {
			return nil, invalidItem("outcomes", n, "candidate", "%s comes twice", o.GetCandidate())
		}
		outcomes[i] = o
	}
	for i, candidate := range b.candidates {
		if b.recorded[i] == 0 && outcomes[i] == nil {
			return nil, invalid("outcomes", "lacks candidate %s", candidate.GetDigest())
		}
	}
	for _, a := range req.GetArtifacts() {
		complete, size := c.artifacts.Stat(a.GetDigest())
		if !complete {
			return nil, missingArtifact(a.GetDigest())
		}
		a.SizeBytes = uint64(size)
	}
	return outcomes, nil
}
