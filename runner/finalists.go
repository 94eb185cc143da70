package runner

import (
	"context"
	"errors"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxRaces limits the races of finalists on a drifting device. The last race counts, and the tracker is
// informed about the device.
const maxRaces = 3

// race measures finalists between two calibrations, and repeats the race if the calibrations differ by more
// than limit.
func (h *Handler) race(ctx context.Context, plan Plan, limit float64, s *batchReport) error {
	before, err := h.Watch.recent(ctx)
	if err != nil {
		return err
	}
	var again string
	for n := 1; ; n++ {
		var outcomes []Outcome
		err := Measure(ctx, plan, func(o Outcome) { outcomes = append(outcomes, o) })
		after := before
		if err == nil {
			after, err = h.Watch.run(ctx)
		}
		if changed := CalibrationChange(before, after); err == nil && changed > limit && n < maxRaces {
			again = fmt.Sprintf("%s: the device changed by %.1f %% while finalists raced, over %.1f %%", h.Device, 100*changed, 100*limit)
			h.Logger.Info("finalists race again", "reason", again)
			before = after
			continue
		}
		for _, o := range outcomes {
			o.Remeasured = again
			s.add(o)
		}
		if err != nil {
			return err
		}
		if err := h.Watch.report(ctx, s.lease.GetSession(), after); err != nil { // the finalists do not fail
			h.Logger.Warn("calibration not reported", "error", err)
		}
		return context.Cause(ctx)
	}
}

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
