package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/records"
)

const convertLong = `Copy the data of a stopped tracker to a store of another kind, and compare every row.

FROM and TO are what 'tilth tracker --store' takes: bolt, which is the records file in
--data, or the address of a PostgreSQL database. Jobs, their events and requests,
batches, agents, cordons, and records are copied; artifacts stay where they are. The
source is not changed. No tracker may run on either store, and none opens an incomplete
target. A database may have several shards; the target has one, and gets
more when trackers open it with --shards.

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
		dir, err := orDefault(data, "tracker")
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
