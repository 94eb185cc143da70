package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
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
	c := &cobra.Command{Use: "resume JOB", Short: "Resume a paused job", Example: "  tilth jobs resume job-00000001"}
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
	var reason string
	a.jsonFlag(c)
	c.Flags().StringVar(&reason, "reason", why, "reason, shown to others")
	return a.onJob(c, func(ctx context.Context, tracker *client.Client, id string) error {
		j, err := change(tracker, ctx, id, reason)
		if err != nil {
			return err
		}
		row := newJobRow(j)
		return a.printResult(row, "job %s: %s%s\n", row.Job, row.State, inBrackets(row.Reason))
	})
}

func newJobsCancel(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "cancel JOB", Short: "End a job; its measurements are kept",
		Example: "  tilth jobs cancel job-00000001 --reason 'wrong model'",
	}
	return a.control(c, "cancelled by "+owner(), (*client.Client).Cancel)
}

// retryView lists the retried batches.
type retryView struct {
	Job     string   `json:"job"`
	Batches []string `json:"batches"`
}

func newJobsRetry(a *app) *cobra.Command {
	var job jobFlag
	c := &cobra.Command{
		Use: "retry JOB [BATCH...]", Short: "Retry batches that the farm gave up",
		Long: `Retry batches that the farm gave up: all of the job's, or those named. 'tilth jobs show'
lists them. A job that has ended is not retried.`,
		Example: "  tilth jobs retry job-00000001\n  tilth jobs retry job-00000001 job-00000001.00000007",
		Args:    job.argsBefore,
	}
	job.add(c)
	a.jsonFlag(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, args []string) error {
		id, named, err := job.find(ctx, tracker, args)
		if err != nil {
			return err
		}
		batches, err := tracker.Retry(ctx, id, named...)
		if err != nil {
			return err
		}
		view := retryView{Job: id, Batches: append([]string{}, batches...)}
		return a.printResult(view, "job %s: %d batches are tried again\n", id, len(batches))
	})
}

// deleteView lists the deleted jobs.
type deleteView struct {
	Jobs []string `json:"jobs"`
}

func newJobsDelete(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "delete JOB...", Short: "Remove jobs that have ended, with their events; records stay",
		Long: `Remove jobs that have ended, with their events. Their records stay, because they belong to
the workload and the target. A job that has not ended must be cancelled first; one that is
already deleted is skipped. The command stops at the first job that it cannot delete.`,
		Example: "  tilth jobs delete job-00000001-abcdef\n  tilth jobs list --state failed --json | jq -r .[].job | xargs tilth jobs delete",
		Args:    cobra.MinimumNArgs(1),
	}
	a.jsonFlag(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, args []string) error {
		var ids []string
		for _, text := range args { // resolve all ids before deleting the first job
			id, err := tracker.FindJob(ctx, text)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			if err := tracker.Delete(ctx, id); err != nil {
				return err
			}
			if !a.asJSON {
				fmt.Fprintf(a.stdout, "job %s: deleted\n", id)
			}
		}
		if a.asJSON {
			return writeJSON(a.stdout, deleteView{Jobs: ids})
		}
		return nil
	})
}

func newJobsPackage(a *app) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "package JOB", Short: "Have a builder compile the model of an ended job, and fetch the package",
		Long: `Have a builder compile the model of an ended job with the best records, and fetch the
package. The job must have been submitted as a model, by the tracker's page or by gRPC.
Tasks without a record get their default schedule. A package that was made before is
fetched again. If the command is interrupted, the builder continues.`,
		Example: "  tilth jobs package job-00000001 -o resnet18.tar",
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`package` to write; - is standard output (default MODEL.tar)")
	return a.onJob(c, func(ctx context.Context, tracker *client.Client, id string) error {
		made, err := tracker.MakePackage(ctx, id, waitPrinter(a))
		if err != nil {
			return err
		}
		if output == "" {
			output = filepath.Base(made.GetSpec().GetName())
		}
		file := made.GetResult().GetOutputs()
		if err := a.fetchFile(ctx, tracker, file, output); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "wrote %s (%s), made by %s in %s\n",
			fileName(output), humanize.Bytes(int64(file.GetSizeBytes())), made.GetResult().GetDevice(), made.GetId())
		return nil
	})
}
