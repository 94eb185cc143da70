package loadtest

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// measure takes as long as a real measurement, and reports like a runner: new results at most once per interval, and
// the rest at the end.
func (f *fleet) measure(ctx context.Context, l *line, token *tilthv1.LeaseToken, work *tilthv1.MeasureWork) error {
	if l.dice.happens(f.Failures.Infra) {
		return errInfra
	}
	report := &tilthv1.ReportMeasurementsRequest{Lease: token}
	var since time.Duration
	for i, c := range work.GetCandidates() {
		took := l.dice.around(f.TrialTime)
		since += took
		report.Measurements = append(report.Measurements, f.measurement(l, c, took))
		if since < f.ReportInterval && i+1 < len(work.GetCandidates()) {
			continue
		}
		if err := retry.Sleep(ctx, since); err != nil {
			return err
		}
		if err := f.report(ctx, l, work, report); err != nil {
			return err
		}
		report, since = &tilthv1.ReportMeasurementsRequest{Lease: token}, 0
	}
	return nil
}

func (f *fleet) report(ctx context.Context, l *line, work *tilthv1.MeasureWork, report *tilthv1.ReportMeasurementsRequest) error {
	client := tilthv1.NewMeasureServiceClient(l)
	var by peer.Peer
	err := agent.Report(ctx, f.log, "ReportMeasurements", func(ctx context.Context) error {
		_, err := client.ReportMeasurements(ctx, report, grpc.Peer(&by))
		return err
	})
	if err != nil {
		return err
	}
	trials := make([]uint32, len(report.GetMeasurements()))
	for i, m := range report.GetMeasurements() {
		trials[i] = m.GetCandidate().GetTrial()
	}
	return f.recorded(work.GetJobId(), work.GetTask(), trials, by.Addr)
}

// measurement returns a candidate's measurement: a crash, or samples around the candidate's latency.
func (f *fleet) measurement(l *line, c *tilthv1.Candidate, took time.Duration) *tilthv1.Measurement {
	m := &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Digest: c.GetDigest(), Trial: c.GetTrial()}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		RunSeconds: took.Seconds(), CalibrationRatio: 1, At: timestamppb.Now(),
	}
	if l.dice.happens(f.Failures.Crash) {
		m.Error, m.Message = tilthv1.ErrorClass_ERROR_CLASS_CRASH, "simulated: signal 11"
		return m
	}
	latency := took.Seconds() / 100
	for range f.Samples {
		m.SamplesSeconds = append(m.SamplesSeconds, latency)
	}
	m.LatencySeconds = latency
	m.Interval = &tilthv1.Interval{LowSeconds: latency, HighSeconds: latency, Level: 0.95}
	return m
}
