package bestschedule

import (
	"cmp"
	"context"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// unmeasured returns the schedules of a task without a record, one per algorithm that the numerics level allows,
// fastest first: according to the cost model, if there is something to learn from, or else the analytic cost.
func (c *chooser) unmeasured(ctx context.Context, task program.Task, numerics schedule.Numerics) ([]alternative, error) {
	s, err := registry.Space(task.Workload, c.target, numerics)
	if err != nil {
		return nil, err
	}
	guesses, err := c.guesses(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(guesses) == 0 {
		return untuned(task, c.target, numerics)
	}
	var list []alternative
	for _, g := range guesses {
		origin := FromTransfer
		if g.Default {
			origin = FromDefault
		}
		list = append(list, newAlternative(task, g.Schedule, aot.Choice{Origin: origin}, g.Seconds))
	}
	slices.SortStableFunc(list, func(a, b alternative) int { return cmp.Compare(a.seconds, b.seconds) })
	return list, nil
}

// learn reads the history once.
func (c *chooser) learn(ctx context.Context) error {
	if c.learnt {
		return nil
	}
	history, err := c.Learn(ctx, c.target)
	if err != nil {
		return err
	}
	c.history, c.learnt = history, true
	return nil
}

// guesses returns the guesses of the cost model, or none if there is nothing to learn from. If the model
// cannot be trained, only its guesses are missing.
func (c *chooser) guesses(ctx context.Context, s *searchspace.Space) ([]transfer.Guess, error) {
	if c.Learn == nil {
		return nil, nil
	}
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	guesses, err := c.history.Guesses(s)
	if err != nil {
		c.log.Warn("the cost model cannot be used, using default schedules", "error", err)
		return nil, nil
	}
	return guesses, nil
}
