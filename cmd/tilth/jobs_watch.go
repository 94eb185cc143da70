package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/cmd/tilth/display"
	"github.com/tilth-dev/tilth/tuner/progress"
)

func newJobsWatch(a *app) *cobra.Command {
	var tracker trackerFlags
	var wanted jobFlag
	var flags followFlags
	c := &cobra.Command{
		Use: "watch JOB", Short: "Show a job from its beginning until it ends",
		Long:    "Show a job from its beginning until it ends. Interrupting this command does not end the job.",
		Example: "  tilth jobs watch job-00000001\n  tilth jobs watch --last --log trials.jsonl --quiet",
		Args:    wanted.args,
	}
	tracker.add(c, defaultTracker)
	wanted.add(c)
	flags.add(a, c)
	flags.level.add(c, slog.LevelWarn)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		logs := &relay{to: a.stderr}
		farm, err := tracker.dial(flags.level.logger(logs))
		if err != nil {
			return err
		}
		defer farm.Close()
		id, _, err := wanted.find(ctx, farm, args)
		if err != nil {
			return err
		}
		j, err := farm.Job(ctx, id)
		if err != nil {
			return err
		}
		budget := j.GetSpec().GetBudget()
		if err := flags.open(); err != nil {
			return err
		}
		w := flags.newFollower(a, j, display.Budget{Trials: int(budget.GetTrials()), Time: budget.GetTime().AsDuration()})
		logs.set(w.display)
		err = w.watch(ctx, farm)
		logs.set(a.stderr)
		if err := errors.Join(err, w.close()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return w.finish(a, flags.asJSON, progress.Summary{Tracker: tracker.addr})
	})
}
