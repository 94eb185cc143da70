package farm

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// BuilderMetrics holds the metrics of builders.
type BuilderMetrics struct {
	candidates *prometheus.CounterVec
	seconds    prometheus.Histogram
}

// NewBuilderMetrics registers the metrics of a builder.
func NewBuilderMetrics(reg prometheus.Registerer) (*BuilderMetrics, error) {
	b := &BuilderMetrics{
		candidates: counter("tilth_builder_candidates_total", "Candidates built, by error class.", "error"),
		seconds:    histogram("tilth_builder_candidate_seconds", "A candidate's share of its batch's build.", 0.001, 16),
	}
	for _, class := range []tilthv1.ErrorClass{
		tilthv1.ErrorClass_ERROR_CLASS_NONE, tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE, tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR,
		tilthv1.ErrorClass_ERROR_CLASS_COMPILE_LIMIT, tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA,
	} {
		b.candidates.WithLabelValues(wire.ErrorClassOrNone(class))
	}
	return b, register(reg, b.candidates, b.seconds)
}

// Report wraps next and counts accepted reports. A batch that failed as a whole counts once.
func (b *BuilderMetrics) Report(next func(context.Context, *tilthv1.ReportBuildRequest) error) func(context.Context, *tilthv1.ReportBuildRequest) error {
	return func(ctx context.Context, report *tilthv1.ReportBuildRequest) error {
		if err := next(ctx, report); err != nil {
			return err
		}
		if class := report.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
			b.candidates.WithLabelValues(wire.ErrorClassOrNone(class)).Inc()
		}
		for _, o := range report.GetOutcomes() {
			b.candidates.WithLabelValues(wire.ErrorClassOrNone(o.GetError())).Inc()
			b.seconds.Observe(o.GetBuildSeconds())
		}
		return nil
	}
}
