package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newJobsCancel(a *app) *cobra.Command {
	var flags clientFlags
	var reason string
	var asJSON bool
	c := &cobra.Command{
		Use: "cancel JOB", Short: "End a job; what was measured stays",
		Example: "  tilth jobs cancel job-00000001 --reason 'wrong model'",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	jsonFlag(c, &asJSON)
	c.Flags().StringVar(&reason, "reason", "cancelled by "+owner(), "why, for those who wonder")
	return a.leaf(c, func(ctx context.Context, args []string) error {
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		j, err := tracker.Cancel(ctx, args[0], reason)
		if err != nil {
			return err
		}
		row := newJobRow(j)
		if asJSON {
			return writeJSON(a.stdout, row)
		}
		_, err = fmt.Fprintf(a.stdout, "job %s: %s (%s)\n", row.Job, row.State, row.Reason)
		return err
	})
}
