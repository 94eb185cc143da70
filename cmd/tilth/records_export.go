package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/schedule"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/staticsite"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

const exportLong = `Write records as JSON lines, one record each.

With --static, write a folder that any web server can serve: index.json, which lists
chunks with their digests and sizes, and the chunks, by target and workload. What reads
it ('tilth compile --records https://...') fetches only the chunks that it needs. The
folder is replaced as a whole: readers see the old export, then the new one.`

func newRecordsExport(a *app) *cobra.Command {
	var flags recordsFlags
	var output, folder string
	c := &cobra.Command{
		Use: "export", Short: "Write records as JSON lines",
		Long: exportLong,
		Example: "  tilth records export -o mine.jsonl\n  tilth records export --tracker 127.0.0.1:9190 | gzip > farm.jsonl.gz\n" +
			"  tilth records export --tracker 127.0.0.1:9190 --static /var/www/records",
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write (default standard output)")
	c.Flags().StringVar(&folder, "static", "", "`folder` to write for a web server: an index, and chunks by target and workload")
	c.MarkFlagsMutuallyExclusive("output", "static")
	return a.onRecords(c, &flags, func(ctx context.Context, source recordsource.Source) error {
		if folder != "" {
			return a.exportStatic(ctx, source, flags, folder)
		}
		if output == "" || output == stdio {
			_, err := a.export(ctx, source, flags, a.binary)
			return err
		}
		return a.exportLines(ctx, source, flags, output)
	})
}

// exportLines writes records to a file. It locks the file, because records added meanwhile would be lost.
func (a *app) exportLines(ctx context.Context, source recordsource.Source, flags recordsFlags, path string) (err error) {
	if recordsource.IsLines(path) {
		lock, err := recordsource.LockLines(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock()) }()
	}
	var count uint64
	err = a.writeFile(path, func(w io.Writer) (err error) {
		count, err = a.export(ctx, source, flags, w)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "exported %d records to %s\n", count, path)
	return nil
}

// exportStatic writes records for a web server.
func (a *app) exportStatic(ctx context.Context, source recordsource.Source, flags recordsFlags, folder string) error {
	count, err := staticsite.Write(folder, staticsite.Source{
		List: func(visit func(*tilthv1.Record) error) error {
			return source.List(ctx, flags.target, flags.workload, visit)
		},
		Best: func(of records.Group, numerics string) (*tilthv1.Record, error) {
			level, err := schedule.ParseNumerics(numerics)
			if err != nil {
				return nil, err
			}
			best, err := source.Best(ctx, of.Target, level, of.Workload)
			if err != nil || len(best) == 0 {
				return nil, err
			}
			return best[0], nil
		},
		LeftOut: a.leftOut,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "exported %d records to %s\n", count, folder)
	return nil
}

func (a *app) leftOut(why error) { fmt.Fprintf(a.stderr, "left out: %v\n", why) }

func (a *app) export(ctx context.Context, source recordsource.Source, flags recordsFlags, w io.Writer) (uint64, error) {
	return records.Export(w, func(visit func(*tilthv1.Record) error) error {
		return source.List(ctx, flags.target, flags.workload, visit)
	}, a.leftOut)
}
