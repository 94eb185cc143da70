package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func newJobsPause(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "pause JOB", Short: "Stop starting work of a job until it is resumed",
		Long: `Stop starting work of a job until it is resumed. What is being built or measured
finishes and counts; the time budget is suspended. A paused job stays paused when the
tracker restarts.`,
		Example: "  tilth jobs pause job-00000001 --reason 'the board is needed'",
	}
	return a.control(c, "paused by "+owner(), (*client.Client).Pause)
}

func newJobsResume(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "resume JOB", Short: "Resume a paused job",
		Example: "  tilth jobs resume job-00000001",
	}
	return a.control(c, "resumed by "+owner(), (*client.Client).Resume)
}

// inBrackets formats a reason as a suffix, or returns "".
func inBrackets(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// control sets up a command that changes a job's state for a reason.
func (a *app) control(c *cobra.Command, why string, change func(*client.Client, context.Context, string, string) (*tilthv1.Job, error)) *cobra.Command {
	var flags clientFlags
	var job jobFlag
	var reason string
	var asJSON bool
	c.Args = job.args
	job.add(c)
	jsonFlag(c, &asJSON)
	c.Flags().StringVar(&reason, "reason", why, "reason, shown to others")
	return a.onTracker(c, &flags, func(ctx context.Context, tracker *client.Client, args []string) error {
		id, _, err := job.find(ctx, tracker, args)
		if err != nil {
			return err
		}
		j, err := change(tracker, ctx, id, reason)
		if err != nil {
			return err
		}
		row := newJobRow(j)
		if asJSON {
			return writeJSON(a.stdout, row)
		}
		_, err = fmt.Fprintf(a.stdout, "job %s: %s%s\n", row.Job, row.State, inBrackets(row.Reason))
		return err
	})
}

func newJobsCancel(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "cancel JOB", Short: "End a job; its measurements are kept",
		Example: "  tilth jobs cancel job-00000001 --reason 'wrong model'",
	}
	return a.control(c, "cancelled by "+owner(), (*client.Client).Cancel)
}
