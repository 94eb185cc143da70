package runner

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// reportInterval is how long measurements may be held back to be reported together.
const reportInterval = time.Second

// batchReport collects a batch's measurements until they are reported.
type batchReport struct {
	handler *Handler
	lease   *tilthv1.LeaseToken
	// open holds the candidates without an outcome, by digest.
	open    map[string]*tilthv1.Candidate
	pending *tilthv1.ReportMeasurementsRequest
	flushed time.Time
}

func newSheet(h *Handler, lease *tilthv1.LeaseToken, batch *tilthv1.MeasureWork) *batchReport {
	s := &batchReport{handler: h, lease: lease, open: map[string]*tilthv1.Candidate{}, flushed: time.Now()}
	for _, c := range batch.GetCandidates() {
		s.open[c.GetDigest()] = c
	}
	s.pending = &tilthv1.ReportMeasurementsRequest{Lease: lease}
	return s
}

// reportError is a failure to report, as opposed to a failure to measure.
type reportError struct{ cause error }

func (e *reportError) Error() string { return e.cause.Error() }

// measure runs a plan for the batch's candidates and ignores reports of other candidates.
func (s *batchReport) measure(ctx context.Context, plan Plan) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := Measure(ctx, plan, func(o Outcome) {
		s.add(o)
		if time.Since(s.flushed) < reportInterval {
			return
		}
		if err := s.flush(ctx); err != nil {
			cancel(&reportError{err})
		}
	})
	if failed := context.Cause(ctx); failed != nil {
		return failed
	}
	return err
}

func (s *batchReport) add(o Outcome) {
	candidate, ok := s.open[o.Kernel]
	if !ok {
		return
	}
	delete(s.open, o.Kernel)
	m := &tilthv1.Measurement{Candidate: candidate, Error: o.Error, Message: agent.FailureMessage(o.Message), SamplesSeconds: o.Samples,
		LatencySeconds: stats.Of(o.Samples).Median, Interval: interval(o.Samples), RelativeError: o.RelativeError, RunSeconds: o.RunSeconds, EnergyJoules: o.EnergyJoules,
		CalibrationRatio: o.CalibrationRatio, Remeasured: o.Remeasured, Device: s.handler.Device, At: timestamppb.Now()}
	s.pending.Measurements = append(s.pending.Measurements, m)
}

// interval returns the confidence interval of the samples' median, or nil.
func interval(samples []float64) *tilthv1.Interval {
	if len(samples) == 0 {
		return nil
	}
	i := stats.MedianInterval(samples)
	return &tilthv1.Interval{LowSeconds: i.Low, HighSeconds: i.High, Level: i.Level}
}

// infra marks the attempt as failed for the candidates without an outcome.
func (s *batchReport) infra(err error) {
	s.pending.InfraError = agent.FailureClass(err, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA)
	s.pending.InfraMessage = agent.FailureMessage(err.Error())
}

// flush reports the collected measurements, if any.
func (s *batchReport) flush(ctx context.Context) error {
	if len(s.pending.GetMeasurements()) == 0 && s.pending.GetInfraError() == 0 {
		return nil
	}
	if err := s.handler.Report(ctx, s.pending); err != nil {
		return err
	}
	s.pending = &tilthv1.ReportMeasurementsRequest{Lease: s.lease}
	s.flushed = time.Now()
	return nil
}
