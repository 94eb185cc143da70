package state

import (
	"cmp"
	"slices"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// measured accepts measurements. It skips trials that are already recorded.
func (c *Change) measured(b *batch, req *tilthv1.ReportMeasurementsRequest) error {
	least := max(b.spec().GetLeastSeconds(), b.spec().GetPeakSeconds()/records.MaxOverPeak)
	for n, m := range req.GetMeasurements() {
		i := b.place(m.GetCandidate())
		if i < 0 {
			return refuseItem("measurements", n, "candidate", "%s, trial %d, is not in batch %s",
				m.GetCandidate().GetDigest(), m.GetCandidate().GetTrial(), b.id)
		}
		m.Candidate = b.candidates[i]
		err := cmp.Or(records.ValidateEnergy(b.job.spec.GetTarget().GetFingerprint(), m),
			records.ValidateRate(m, b.spec().GetFlop(), least))
		if err != nil {
			return refuseItem("measurements", n, "", "%s", strings.TrimPrefix(err.Error(), records.ErrInvalid.Error()+": "))
		}
	}
	a := b.lease.agent
	b.lease.deadline = later(b.lease.deadline, a.heard.Add(c.cfg.LeaseTimeout))
	if b.knows(req.GetMeasurements()) && req.GetInfraError() == tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		c.Repeated("ReportMeasurements")
	}
	var trials []*tilthv1.JobEvent
	for _, m := range req.GetMeasurements() {
		if i := b.place(m.GetCandidate()); b.recorded[i] == 0 {
			b.lease.spend(a.heard, m.GetRunSeconds())
			trials = append(trials, c.recordTrial(b, i, b.attribute(i, a, m)))
		}
	}
	c.storeTrials(b, trials)
	infra := req.GetInfraError()
	switch {
	case b.open == 0:
		c.succeed(b)
		c.closeBatch(b)
	case infra != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED:
		b.settle()
		c.failAttempt(b, infra, req.GetInfraMessage())
	}
	return nil
}

// knows reports whether all the trials are already recorded.
func (b *batch) knows(measured []*tilthv1.Measurement) bool {
	return !slices.ContainsFunc(measured, func(m *tilthv1.Measurement) bool {
		return b.recorded[b.place(m.GetCandidate())] == 0
	})
}

// attribute overwrites the fields of a measurement that the runner must not decide. The device comes from the lease,
// the build time from the builder, and only the tracker marks a measurement as suspect.
func (b *batch) attribute(i int, a *agent, m *tilthv1.Measurement) *tilthv1.Measurement {
	m.Device, m.Suspected, m.BuildSeconds = a.name(), "", 0
	if len(b.buildSeconds) > 0 {
		m.BuildSeconds = b.buildSeconds[i]
	}
	return m
}

// ReportMeasurements accepts measurements or the reason for their absence. known is false if the machine does not know
// the lease.
func (c *Change) ReportMeasurements(req *tilthv1.ReportMeasurementsRequest) (known bool, err error) {
	return c.report("ReportMeasurements", req.GetLease(), storev1.Stage_STAGE_MEASURE, func(b *batch) error { return c.measured(b, req) })
}

// built accepts a build. It records failed candidates and queues the rest for a runner.
func (c *Change) built(b *batch, req *tilthv1.ReportBuildRequest) error {
	// Pin before checking, so that nothing is evicted in between.
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
	shares := make(Built, 0, len(b.candidates))
	var trials []*tilthv1.JobEvent
	for i, o := range outcomes {
		if o == nil {
			continue
		}
		b.buildSeconds[i] = o.GetBuildSeconds()
		shares = append(shares, o.GetBuildSeconds())
		if o.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE {
			trials = append(trials, c.recordTrial(b, i, &tilthv1.Measurement{
				Error: o.GetError(), Message: o.GetMessage(), BuildSeconds: o.GetBuildSeconds(),
			}))
		}
	}
	c.addFact(shares)
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

// matchOutcomes returns the outcomes by candidate: exactly one for each candidate without a record.
func (c *Change) matchOutcomes(b *batch, req *tilthv1.ReportBuildRequest) ([]*tilthv1.BuildOutcome, error) {
	outcomes := make([]*tilthv1.BuildOutcome, len(b.candidates))
	places := b.places()
	for n, o := range req.GetOutcomes() {
		i, known := places[o.GetCandidate()]
		if !known || b.recorded[i] != 0 {
			return nil, refuseItem("outcomes", n, "candidate", "%s is not to be built in batch %s", o.GetCandidate(), b.id)
		}
		if outcomes[i] != nil {
			return nil, refuseItem("outcomes", n, "candidate", "duplicate %s", o.GetCandidate())
		}
		outcomes[i] = o
	}
	for i, candidate := range b.candidates {
		if b.recorded[i] == 0 && outcomes[i] == nil {
			return nil, refuseField("outcomes", "lacks candidate %s", candidate.GetDigest())
		}
	}
	for _, a := range req.GetArtifacts() {
		complete, size := c.artifacts.Stat(a.GetDigest())
		if !complete {
			return nil, refuseArtifact(a.GetDigest())
		}
		a.SizeBytes = uint64(size)
	}
	return outcomes, nil
}

// ReportBuild accepts a build or the reason for its failure. known is false if the machine does not know the lease.
func (c *Change) ReportBuild(req *tilthv1.ReportBuildRequest) (known bool, err error) {
	return c.report("ReportBuild", req.GetLease(), storev1.Stage_STAGE_BUILD, func(b *batch) error {
		if class := req.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
			b.settle()
			c.failAttempt(b, class, req.GetInfraMessage())
			return nil
		}
		return c.built(b, req)
	})
}

// report runs step if the token is the batch's lease. A report that was accepted before is accepted again and changes
// nothing. known is false if the batch is no longer open.
func (c *Change) report(call string, token *tilthv1.LeaseToken, stage storev1.Stage, step func(b *batch) error) (known bool, err error) {
	if b, ok := c.lookUp(token).(*batch); ok && b.stage == stage {
		c.keepAlive(b.lease.agent)
		return true, step(b)
	}
	b := c.batches[token.GetSubject()]
	if b == nil {
		return false, nil
	}
	if !Holds(b.settled, token) {
		return true, Stale(call, token)
	}
	c.Repeated(call)
	return true, nil
}
