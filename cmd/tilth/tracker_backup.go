package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

const backupLong = `Write a tracker's records file, as it is at one instant, while the tracker runs.

The file appears whole or not at all, has all jobs and records that were acknowledged
before, and is verified. 'tilth tracker restore' restores it. It has no artifacts: those
that are needed are built again. With --backup-every a tracker makes backups by itself.`

func newTrackerBackup(a *app) *cobra.Command {
	var flags trackerFlags
	var output string
	log := logFlag{level: slog.LevelWarn}
	c := &cobra.Command{
		Use: "backup -o FILE", Short: "Write a tracker's records file while it runs", Long: backupLong,
		Example: "  tilth tracker backup -o tilth-$(date +%F).db\n  tilth tracker backup --tracker 127.0.0.1:9190 -o /backup/tilth.db",
	}
	flags.add(c, defaultTracker)
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write")
	_ = c.MarkFlagRequired("output") // the flag exists
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		tracker, err := flags.dial(log.logger(a.stderr))
		if err != nil {
			return err
		}
		defer tracker.Close()
		var size uint64
		err = a.writePrivate(output, func(w io.Writer) (err error) {
			size, err = tracker.Backup(ctx, w)
			return err
		})
		if err != nil {
			return err
		}
		if info, err := os.Stat(output); err == nil && info.Mode().IsRegular() { // excludes /dev/stdout and -
			if _, err := bolt.SealCopy(ctx, output, time.Now()); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(a.statusWriter(output), "wrote %s, %s\n", fileName(output), humanize.Bytes(int64(size)))
		return err
	})
}

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
		dir, err := trackerDir(data)
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

const trackerVerifyLong = `Read a tracker's artifacts and compare each with its sha256, then its records file as
'tilth records verify' does. Nothing is changed.

The tracker may run meanwhile, but locks its records file: verify a backup instead. A
tracker checks artifacts when they are used, and the rest in the background
('tilth tracker --scrub-rate'). It moves damaged ones to artifacts/damaged and has them
built again.`

func newTrackerVerify(a *app) *cobra.Command {
	var data, address string
	c := &cobra.Command{
		Use: "verify", Short: "Check a tracker's artifacts and records on its disk", Long: trackerVerifyLong,
		Example: "  tilth tracker verify --data /var/lib/tilth/tracker",
	}
	c.Flags().StringVar(&address, "artifacts", "", "`address` of the tracker's object store; see tilth tracker (default the artifacts in --data)")
	c.Flags().StringVar(&data, "data", "", "the tracker's `folder` (default $XDG_DATA_HOME/tilth/tracker)")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		dir, err := trackerDir(data)
		if err != nil {
			return err
		}
		err = a.verifyArtifacts(ctx, filepath.Join(dir, "artifacts"), address)
		if errors.Is(err, fs.ErrNotExist) {
			return err // not a tracker's folder
		}
		path := filepath.Join(dir, recordsName)
		broken := a.verifyRecords(ctx, path)
		if errors.Is(broken, records.ErrLocked) {
			_, broken = fmt.Fprintf(a.stdout, "%s: not checked, a tracker has it: verify a backup of it\n", path)
		}
		return errors.Join(err, broken)
	})
}

func (a *app) verifyArtifacts(ctx context.Context, dir, address string) error {
	blobs, where := artifact.Folder(dir), dir
	if address != "" {
		at, err := s3.ParseAddress(address)
		if err != nil {
			return usagef("--artifacts: %v", err)
		}
		if blobs, err = s3.Open(at); err != nil {
			return err
		}
		where = at.String()
	}
	v, err := artifact.Verify(ctx, blobs)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: name the tracker's folder with --data", err)
	}
	if err != nil {
		return err
	}
	for _, digest := range v.Damaged {
		if _, err := fmt.Fprintf(a.stdout, "damaged artifact %s\n", digest); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(a.stdout, "artifacts checked: %d, %s; damaged: %d\n", v.Files, humanize.Bytes(v.Bytes), len(v.Damaged)); err != nil {
		return err
	}
	if n := len(v.Damaged); n > 0 {
		return fmt.Errorf("%d of %d artifacts in %s are damaged: start the tracker, which replaces what is needed, and check the disk", n, v.Files, where)
	}
	return nil
}

const convertLong = `Copy the data of a stopped tracker to a store of another kind, and compare every row.

FROM and TO are stores as in 'tilth tracker --store': bolt, the records file in --data,
or the address of a PostgreSQL database. Jobs, their events and requests, batches,
agents, cordons, and records are copied; artifacts stay where they are. The source is
not changed. No tracker may run on either store, and none opens an incomplete target.
The target has one shard, and gets more when trackers open it with --shards.

The target must be empty. Run the same command again to continue an interrupted
conversion. When it has finished, start the tracker on the target. Do not start one on
the source any more: its changes would be missing from the target.`

func newTrackerConvert(a *app) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "convert FROM TO", Short: "Copy a stopped tracker's records from a file to a database, or back", Long: convertLong,
		Example: `  tilth tracker convert bolt postgres://tilth@db.example.com/tilth --data /var/lib/tilth/tracker
  tilth tracker convert postgres://tilth@db.example.com/tilth bolt --data /var/lib/tilth/tracker`,
		Args: cobra.ExactArgs(2),
	}
	c.Flags().StringVar(&data, "data", "", "the tracker's `folder`, which has the file (default $XDG_DATA_HOME/tilth/tracker)")
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if args[0] == args[1] {
			return usagef("FROM and TO are the same store")
		}
		dir, err := trackerDir(data)
		if err != nil {
			return err
		}
		source, err := convertible(args[0])
		if err != nil {
			return err
		}
		target, err := convertible(args[1])
		if err != nil {
			return err
		}
		path := filepath.Join(dir, recordsName)
		from, err := source.Source(ctx, args[0], path)
		if err != nil {
			return err
		}
		to, err := target.Target(ctx, args[1], path)
		if err != nil {
			return errors.Join(err, from.Close())
		}
		counts, err := records.Convert(ctx, from, to, progressPrinter(a.stderr, convertedEvery))
		names := []string{from.Name(), to.Name()}
		if err := errors.Join(err, to.Close(), from.Close()); err != nil {
			return err
		}
		return showConverted(a.stdout, names[0], names[1], counts)
	})
}

// convertible returns the chosen kind of store, which must be persistent.
func convertible(choice string) (farm.StoreKind, error) {
	kind, err := farm.StoreKindOf(choice)
	if err != nil {
		return kind, usagef("%v", err)
	}
	if kind.Source == nil {
		return kind, usagef("store %s keeps nothing: name bolt or the address of a database", kind.Name)
	}
	return kind, nil
}

// convertedEvery is the interval of progress messages.
const convertedEvery = 5 * time.Second

// progressPrinter prints the progress of a conversion at an interval.
func progressPrinter(w io.Writer, every time.Duration) func(records.Converted) {
	last := time.Now()
	return func(c records.Converted) {
		if time.Since(last) < every {
			return
		}
		last = time.Now()
		done := "copied"
		if c.Compared {
			done = "compared"
		}
		fmt.Fprintf(w, "%s: %d %s\n", c.Kind, c.Rows, done)
	}
}

// showConverted prints the converted counts.
func showConverted(w io.Writer, from, to string, counts []records.Converted) error {
	for _, c := range counts {
		if c.Rows == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %d\n", c.Kind, c.Rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "converted %s into %s: every row is the same in both\n", from, to)
	return err
}
