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
