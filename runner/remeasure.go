package runner

import (
	"context"
	"errors"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// remeasureFailedAlone measures failed candidates once more without other candidates' objects, because one object
// must not cause the failure of another's candidates.
func (m *measurement) remeasureFailedAlone(ctx context.Context) error {
	if len(m.plan.Candidates) == 1 {
		return nil
	}
	for k, o := range m.outcomes {
		if o == nil || m.reported[k] || o.Error == tilthv1.ErrorClass_ERROR_CLASS_NONE {
			continue
		}
		alone := &measurement{plan: m.plan.only(m.kernels[k], m.modules[k]), results: m.results, current: -1, loading: -1}
		alone.report = func(again Outcome) { m.outcomes[k] = &again }
		if err := alone.run(ctx); err != nil && !errors.As(err, new(*loadError)) {
			return err
		}
	}
	return nil
}
