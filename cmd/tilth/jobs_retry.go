package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// retryView is what was queued anew.
type retryView struct {
	Job     string   `json:"job"`
	Batches []string `json:"batches"`
}

func newJobsRetry(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "retry JOB [BATCH...]", Short: "Retry batches that the farm gave up",
		Long: `Retry batches that the farm gave up: all of the job's, or those named. 'tilth jobs show'
lists them. A job that has ended is not retried.`,
		Example: "  tilth jobs retry job-00000001\n  tilth jobs retry job-00000001 job-00000001.00000007",
		Args:    cobra.MinimumNArgs(1),
	}
	flags.add(c)
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		batches, err := tracker.Retry(ctx, args[0], args[1:]...)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(a.stdout, retryView{Job: args[0], Batches: append([]string{}, batches...)})
		}
		_, err = fmt.Fprintf(a.stdout, "job %s: %d batches are tried again\n", args[0], len(batches))
		return err
	})
}
