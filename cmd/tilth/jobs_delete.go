package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

// deleteView lists the deleted jobs.
type deleteView struct {
	Jobs []string `json:"jobs"`
}

func newJobsDelete(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "delete JOB...", Short: "Remove jobs that have ended, with their events; records stay",
		Long: `Remove jobs that have ended, with their events. Their records stay, because they belong to
the workload and the target. A job that has not ended must be cancelled first; one that is
already deleted is skipped. The command stops at the first job that it cannot delete.`,
		Example: "  tilth jobs delete job-00000001-abcdef\n  tilth jobs list --state failed --json | jq -r .[].job | xargs tilth jobs delete",
		Args:    cobra.MinimumNArgs(1),
	}
	jsonFlag(c, &asJSON)
	return a.onTracker(c, &flags, func(ctx context.Context, tracker *client.Client, args []string) error {
		var deleted []string
		ids, err := findJobs(ctx, tracker, args) // resolve all ids before deleting the first job
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := tracker.Delete(ctx, id); err != nil {
				return err
			}
			deleted = append(deleted, id)
			if !asJSON {
				fmt.Fprintf(a.stdout, "job %s: deleted\n", id)
			}
		}
		if asJSON {
			return writeJSON(a.stdout, deleteView{Jobs: deleted})
		}
		return nil
	})
}
