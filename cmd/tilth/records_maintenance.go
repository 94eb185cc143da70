package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

const recordsVerifyLong = `Read all pages and rows of a records file, and report what is damaged.

Every row has a checksum. A damaged row is never served: the best record is chosen among
the others, and requests for the job of a damaged row fail. Nothing is
written. No process may have the file open for writing: stop the tracker first, or
verify a backup.`

func newRecordsVerify(a *app) *cobra.Command {
	var file, data string
	c := &cobra.Command{
		Use: "verify", Short: "Check all rows and pages of a records file", Long: recordsVerifyLong,
		Example: "  tilth records verify\n  tilth records verify --records tilth-backup.db\n  tilth records verify --data /var/lib/tilth/tracker",
	}
	recordsFlag(c, &file)
	c.Flags().StringVar(&data, "data", "", "`folder` of the tracker whose records file to verify")
	c.MarkFlagsMutuallyExclusive("records", "data")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		path, err := recordsPath(file)
		if data != "" {
			path, err = filepath.Join(data, recordsName), nil
		}
		if err != nil {
			return err
		}
		return a.verifyRecords(ctx, path)
	})
}

// verifyRecords checks a records file and prints the report.
func (a *app) verifyRecords(ctx context.Context, path string) error {
	report, err := bolt.Verify(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(showReport(a.stdout, path, report), report.Failure(path))
}

// showReport prints the report of a records file check.
func showReport(w io.Writer, path string, r *records.Report) error {
	for _, d := range r.Damage {
		if _, err := fmt.Fprintln(w, d); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s, %d pages, %d rows with checksums; %d damaged, %d set aside before\n",
		path, humanize.Bytes(r.SizeBytes), r.Pages, r.Rows, r.Damaged, r.SetAside)
	return err
}

const pruneLong = `Remove records that are no longer needed.

For each workload and target, the fastest --keep-best verified records and the newest
--keep-recent stay. So do the best at each level of numerics and all records of jobs
that have not ended. The file does not shrink: freed space is used again, or returned
by 'tilth records compact'.`

func newRecordsPrune(a *app) *cobra.Command {
	var flags recordsFlags
	var best, recent int
	c := &cobra.Command{
		Use: "prune", Short: "Remove all but the best and the newest records of each workload and target", Long: pruneLong,
		Example: "  tilth records prune --keep-best 100 --keep-recent 1000\n  tilth records prune --keep-best 20 --keep-recent 0 --tracker 127.0.0.1:9190",
	}
	flags.addSource(c)
	flags.addFilter(c)
	c.Flags().IntVar(&best, "keep-best", 0, "how many of the fastest verified `records` stay")
	c.Flags().IntVar(&recent, "keep-recent", 0, "how many of the newest `records` stay")
	atLeast(c, 0, "keep-best", "keep-recent")
	_ = c.MarkFlagRequired("keep-best") // the flag exists
	_ = c.MarkFlagRequired("keep-recent")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		removed, kept, err := a.prune(ctx, flags, best, recent)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "removed %d records, kept %d\n", removed, kept)
		return err
	})
}

func (a *app) prune(ctx context.Context, flags recordsFlags, best, recent int) (removed, kept uint64, err error) {
	if err := a.resolve(ctx, &flags); err != nil {
		return 0, 0, err
	}
	if flags.tracker.addr != "" {
		tracker, err := flags.tracker.dial(flags.log.logger(a.stderr))
		if err != nil {
			return 0, 0, err
		}
		defer tracker.Close()
		return tracker.Prune(ctx, &tilthv1.PruneRecordsRequest{
			KeepBest: uint32(best), KeepRecent: uint32(recent), Target: flags.target, WorkloadDigest: flags.workload,
		})
	}
	path, err := recordsPath(flags.file)
	if err != nil {
		return 0, 0, err
	}
	db, err := bolt.OpenExisting(path, bolt.Options{})
	if err != nil {
		return 0, 0, err
	}
	removed, kept, err = db.Prune(ctx, records.PruneOptions{KeepBest: best, KeepRecent: recent, Target: flags.target, Workload: flags.workload})
	return removed, kept, errors.Join(err, db.Close())
}

// resolve completes the filters from the existing records.
func (a *app) resolve(ctx context.Context, flags *recordsFlags) error {
	source, err := flags.open(ctx, a, false)
	if err != nil {
		return err
	}
	return errors.Join(flags.resolve(ctx, source), source.Close())
}

const compactLong = `Rewrite a records file without the free space that removed and replaced entries left.

The new file replaces the old one once all of it is on disk, which needs space for both.
A crash at any instant leaves one of the two. No other process may have the file open:
stop the tracker first.`

func newRecordsCompact(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "compact", Short: "Return the free space in a records file to the disk", Long: compactLong,
		Example: "  tilth records compact\n  tilth records compact --records /var/lib/tilth/tracker/tilth.db",
	}
	recordsFlag(c, &file)
	return a.leaf(c, func(context.Context, []string) error {
		path, err := recordsPath(file)
		if err != nil {
			return err
		}
		before, after, err := bolt.Compact(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s has %s, it had %s\n", path, humanize.Bytes(after), humanize.Bytes(before))
		return err
	})
}
