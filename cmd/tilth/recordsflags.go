package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/recordsource"
)

// recordsFlags say where records are, and which are meant.
type recordsFlags struct {
	file    string
	tracker trackerFlags
	log     logFlag
	// Filters.
	target, workload string
}

// addSource adds the flags of where.
func (f *recordsFlags) addSource(c *cobra.Command) {
	recordsFlag(c, &f.file)
	f.tracker.add(c, "")
	c.MarkFlagsMutuallyExclusive("records", "tracker")
	f.log.level = slog.LevelWarn
}

// addFilter adds the flags of which.
func (f *recordsFlags) addFilter(c *cobra.Command) {
	c.Flags().StringVar(&f.target, "target", "", "only records of this target `fingerprint`")
	c.Flags().StringVar(&f.workload, "workload", "", "only records of this workload `digest`")
}

func (f *recordsFlags) open(a *app, writable bool) (recordsource.Source, error) {
	if f.tracker.addr != "" {
		logger := f.log.logger(a.stderr)
		options, err := f.tracker.options(logger)
		if err != nil {
			return nil, err
		}
		return recordsource.Dial(f.tracker.addr, logger, options...)
	}
	path, err := recordsPath(f.file)
	if err != nil {
		return nil, err
	}
	return recordsource.OpenFile(path, writable)
}
