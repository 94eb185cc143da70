package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

// retryView lists the retried batches.
type retryView struct {
	Job     string   `json:"job"`
	Batches []string `json:"batches"`
}

func newJobsRetry(a *app) *cobra.Command {
	var flags clientFlags
	var job jobFlag
	var asJSON bool
	c := &cobra.Command{
		Use: "retry JOB [BATCH...]", Short: "Retry batches that the farm gave up",
		Long: `Retry batches that the farm gave up: all of the job's, or those named. 'tilth jobs show'
lists them. A job that has ended is not retried.`,
		Example: "  tilth jobs retry job-00000001\n  tilth jobs retry job-00000001 job-00000001.00000007",
		Args:    job.argsBefore,
	}
	job.add(c)
	jsonFlag(c, &asJSON)
	return a.onTracker(c, &flags, func(ctx context.Context, tracker *client.Client, args []string) error {
		id, named, err := job.find(ctx, tracker, args)
		if err != nil {
			return err
		}
		batches, err := tracker.Retry(ctx, id, named...)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(a.stdout, retryView{Job: id, Batches: append([]string{}, batches...)})
		}
		_, err = fmt.Fprintf(a.stdout, "job %s: %d batches are tried again\n", id, len(batches))
		return err
	})
}
