package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tracker"
)

// backupFlags configures the backups of a tracker's records.
type backupFlags struct{ policy tracker.Backups }

func (f *backupFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.policy.Every, "backup-every", 0, "how often the records file is backed up to --backup-dir (0 = never)")
	c.Flags().StringVar(&f.policy.Dir, "backup-dir", "", "`folder` for backups only, best on another disk; each is verified before it counts")
	c.Flags().IntVar(&f.policy.Keep, "backup-keep", 14, "how many backups are kept (0 = any number)")
	c.Flags().DurationVar(&f.policy.KeepFor, "backup-keep-for", 30*24*time.Hour, "how long a backup is kept; the last good one stays (0 = for ever)")
}

func (f *backupFlags) check() error {
	switch p := &f.policy; {
	case p.Every < 0 || p.Every > 0 && p.Every < time.Minute:
		return usagef("--backup-every %s: want a minute at least, or 0", p.Every)
	case (p.Every > 0) != (p.Dir != ""):
		return usagef("--backup-every and --backup-dir belong together: name both, or neither")
	case p.Keep < 0:
		return usagef("--backup-keep %d: want a number of at least 0", p.Keep)
	case p.KeepFor < 0:
		return usagef("--backup-keep-for %s: want a time, or 0", p.KeepFor)
	}
	return nil
}
