package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
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
		Args:    cobra.NoArgs,
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
