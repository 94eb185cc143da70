package tracker

import (
	"context"
	"slices"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ReportMeasurements implements tilthv1.MeasureServiceServer.
func (t *Tracker) ReportMeasurements(ctx context.Context, req *tilthv1.ReportMeasurementsRequest) (*tilthv1.ReportMeasurementsResponse, error) {
	if err := checkMeasurements(req); err != nil {
		return nil, err
	}
	err := t.report(ctx, "ReportMeasurements", req.GetLease(), storev1.Stage_STAGE_MEASURE, func(c *change, b *batch) error {
		return c.measured(b, req)
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.ReportMeasurementsResponse{}, nil
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
		if s := m.GetSamplesSeconds(); len(s) > 0 && (m.GetLatencySeconds() < slices.Min(s) || m.GetLatencySeconds() > slices.Max(s)) {
			return invalidItem("measurements", i, "latency_seconds", "is %v, which is no median of samples from %v to %v",
				m.GetLatencySeconds(), slices.Min(s), slices.Max(s))
		}
		if d := m.GetCandidate().GetDigest(); seen[d] {
			return invalidItem("measurements", i, "candidate", "%s comes twice", d)
		} else {
			seen[d] = true
		}
	}
	return nil
}

// measured takes in measurements; those of trials that are recorded already are passed over.
func (c *change) measured(b *batch, req *tilthv1.ReportMeasurementsRequest) error {
	for n, m := range req.GetMeasurements() {
		if b.place(m.GetCandidate()) < 0 {
			return invalidItem("measurements", n, "candidate", "%s, trial %d, is not in batch %s",
				m.GetCandidate().GetDigest(), m.GetCandidate().GetTrial(), b.id)
		}
	}
	a := b.lease.agent
	b.lease.deadline = later(b.lease.deadline, a.heard.Add(c.cfg.LeaseTimeout))
	if b.knows(req.GetMeasurements()) && req.GetInfraError() == tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
		c.repeated("ReportMeasurements")
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
		c.lose(b, infra, req.GetInfraMessage())
	}
	return nil
}

// knows says whether all the trials are recorded already.
func (b *batch) knows(measured []*tilthv1.Measurement) bool {
	return !slices.ContainsFunc(measured, func(m *tilthv1.Measurement) bool {
		return b.recorded[b.place(m.GetCandidate())] == 0
	})
}

// attribute makes a measurement the tracker's. A runner speaks for its device only: who measured is the lease's to
// say, what building took is the builder's, and only the tracker doubts a measurement, whatever the report says.
func (b *batch) attribute(i int, a *agent, m *tilthv1.Measurement) *tilthv1.Measurement {
	m.Device, m.Suspected, m.BuildSeconds = a.name(), "", 0
	if len(b.buildSeconds) > 0 {
		m.BuildSeconds = b.buildSeconds[i]
	}
	return m
}
