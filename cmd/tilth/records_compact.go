package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/records/bolt"
)

const compactLong = `Rewrite a records file without the free space that removed and replaced entries left.

The new file replaces the old one once all of it is on disk, which needs space for both.
A crash at any instant leaves one of the two. No other process may have the file open:
stop the tracker first.`

func newRecordsCompact(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "compact", Short: "Return the free space in a records file to the disk", Long: compactLong,
		Example: "  tilth records compact\n  tilth records compact --records /var/lib/tilth/tracker/tilth.db",
		Args:    cobra.NoArgs,
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
		_, err = fmt.Fprintf(a.stdout, "%s has %s, it had %s\n", path, show.Bytes(after), show.Bytes(before))
		return err
	})
}
