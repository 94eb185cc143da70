package farm

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// RunnerMetrics holds the metrics of runners.
type RunnerMetrics struct {
	candidates *prometheus.CounterVec
	seconds    prometheus.Histogram
	disturbed  prometheus.Histogram
}

// NewRunnerMetrics registers the metrics of a runner.
func NewRunnerMetrics(reg prometheus.Registerer) (*RunnerMetrics, error) {
	r := &RunnerMetrics{
		candidates: counter("tilth_runner_candidates_total", "Candidates measured, by error class.", "error"),
		seconds:    histogram("tilth_runner_candidate_seconds", "Time a candidate held the device.", 0.001, 16),
		disturbed: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tilth_runner_calibration_ratio", Help: "Around each measurement, time of the calibration kernel over the least known: 1 on a calm device.",
			Buckets: []float64{1.005, 1.01, 1.02, 1.03, 1.05, 1.08, 1.15, 1.3, 1.6, 2, 4},
		}),
	}
	for _, class := range []tilthv1.ErrorClass{
		tilthv1.ErrorClass_ERROR_CLASS_NONE, tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, tilthv1.ErrorClass_ERROR_CLASS_CRASH,
		tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA,
	} {
		r.candidates.WithLabelValues(wire.ErrorClassOrNone(class))
	}
	return r, register(reg, r.candidates, r.seconds, r.disturbed)
}

// Report wraps next and counts accepted reports. A batch that failed as a whole counts once.
func (r *RunnerMetrics) Report(next func(context.Context, *tilthv1.ReportMeasurementsRequest) error) func(context.Context, *tilthv1.ReportMeasurementsRequest) error {
	return func(ctx context.Context, report *tilthv1.ReportMeasurementsRequest) error {
		if err := next(ctx, report); err != nil {
			return err
		}
		if class := report.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
			r.candidates.WithLabelValues(wire.ErrorClassOrNone(class)).Inc()
		}
		for _, m := range report.GetMeasurements() {
			r.candidates.WithLabelValues(wire.ErrorClassOrNone(m.GetError())).Inc()
			if m.GetRunSeconds() > 0 {
				r.seconds.Observe(m.GetRunSeconds())
			}
			if m.GetCalibrationRatio() > 0 {
				r.disturbed.Observe(m.GetCalibrationRatio())
			}
		}
		return nil
	}
}
