package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

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
