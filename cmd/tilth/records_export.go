package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuning/recordsource"
)

func newRecordsExport(a *app) *cobra.Command {
	var flags recordsFlags
	var output string
	c := &cobra.Command{
		Use: "export", Short: "Write records as JSON lines",
		Example: "  tilth records export -o mine.jsonl\n  tilth records export --tracker 127.0.0.1:9190 | gzip > farm.jsonl.gz",
		Args:    cobra.NoArgs,
	}
	flags.addSource(c)
	flags.addFilter(c)
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write (default standard output)")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		source, err := flags.open(a, false)
		if err != nil {
			return err
		}
		defer source.Close()
		if err := flags.resolve(ctx, source); err != nil {
			return err
		}
		if output == "" || output == stdio {
			_, err := a.export(ctx, source, flags, a.stdout)
			return err
		}
		var count uint64
		err = a.writeFile(output, func(w io.Writer) (err error) {
			count, err = a.export(ctx, source, flags, w)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "exported %d records to %s\n", count, output)
		return nil
	})
}

func (a *app) export(ctx context.Context, source recordsource.Source, flags recordsFlags, w io.Writer) (uint64, error) {
	return records.Export(w, func(visit func(*tilthv1.Record) error) error {
		return source.List(ctx, flags.target, flags.workload, visit)
	}, func(why error) { fmt.Fprintf(a.stderr, "left out: %v\n", why) })
}
