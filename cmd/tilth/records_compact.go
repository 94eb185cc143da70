package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/records"
)

const compactLong = `Write a records file anew, without the room that removed and replaced entries left.

The new file takes the place of the old one when all of it is on the disk, which needs
room for both; a crash at any instant leaves one of the two. Nobody else may have the
file open: stop the tracker first.`

func newRecordsCompact(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "compact", Short: "Give the room that is free in a records file back to the disk", Long: compactLong,
		Example: "  tilth records compact\n  tilth records compact --records /var/lib/tilth/tracker/tilth.db",
		Args:    cobra.NoArgs,
	}
	recordsFlag(c, &file)
	return a.leaf(c, func(context.Context, []string) error {
		path, err := recordsPath(file)
		if err != nil {
			return err
		}
		before, after, err := records.Compact(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s has %s, it had %s\n", path, show.Bytes(after), show.Bytes(before))
		return err
	})
}
