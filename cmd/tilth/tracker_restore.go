package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records/bolt"
)

const restoreLong = `Replace a tracker's records file by a backup, and report what is lost.

The tracker must be stopped. The backup is verified first and stays where it is; the
replaced file is kept beside the new one. When the tracker starts, all agents join
again, leases of the lost life are refused, open jobs continue from the state in the
backup, and missing artifacts are built again.`

func newTrackerRestore(a *app) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore a stopped tracker's records file from a backup", Long: restoreLong,
		Example: "  tilth tracker restore /backup/tilth-20260131T120000Z.db --data /var/lib/tilth/tracker",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&data, "data", "", "the tracker's `folder` (default $XDG_DATA_HOME/tilth/tracker)")
	return a.leaf(c, func(ctx context.Context, args []string) error {
		dir, err := orDefault(data, "tracker")
		if err != nil {
			return err
		}
		path := filepath.Join(dir, recordsName)
		done, err := bolt.Restore(ctx, args[0], path, time.Now())
		if err != nil {
			return err
		}
		return showRestoration(a.stdout, args[0], path, done)
	})
}

// showRestoration prints what was restored and what is lost.
func showRestoration(w io.Writer, backup, path string, r *bolt.Restoration) error {
	lines := []string{fmt.Sprintf("restored %s from %s: %s, %d rows, no damage", path, backup, humanize.Bytes(r.Report.SizeBytes), r.Report.Rows)}
	if r.Aside != "" {
		lines = append(lines, "the file that was there is kept as "+r.Aside)
	}
	switch lost := r.Lost; {
	case r.Unreadable != nil:
		lines = append(lines, fmt.Sprintf("what is lost is not known, that file cannot be read: %v", r.Unreadable))
	case lost != nil && lost.JobCount+lost.Records == 0:
		lines = append(lines, "no job and no record is lost")
	case lost != nil:
		lines = append(lines, fmt.Sprintf("lost since the backup: %d jobs, %d records of %d workloads", lost.JobCount, lost.Records, lost.Workloads))
		if n := len(lost.Jobs); n > 0 {
			more := ""
			if lost.JobCount > uint64(n) {
				more = fmt.Sprintf(" and %d more", lost.JobCount-uint64(n))
			}
			lines = append(lines, "lost jobs, to be submitted again: "+strings.Join(lost.Jobs, " ")+more)
		}
	}
	lines = append(lines, "start the tracker: agents rejoin, open jobs continue, and missing artifacts are built again")
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
