package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

const recordsVerifyLong = `Read all pages and rows of a records file, and report what is damaged.

Every row has a checksum. A damaged row is never served: the best record is chosen among
the others, and requests for the job of a damaged row fail. Nothing is
written. No process may have the file open for writing: stop the tracker first, or
verify a backup.`

func newRecordsVerify(a *app) *cobra.Command {
	var file, data string
	c := &cobra.Command{
		Use: "verify", Short: "Check all rows and pages of a records file", Long: recordsVerifyLong,
		Example: "  tilth records verify\n  tilth records verify --records tilth-backup.db\n  tilth records verify --data /var/lib/tilth/tracker",
	}
	recordsFlag(c, &file)
	c.Flags().StringVar(&data, "data", "", "`folder` of the tracker whose records file to verify")
	c.MarkFlagsMutuallyExclusive("records", "data")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		path, err := recordsPath(file)
		if data != "" {
			path, err = filepath.Join(data, recordsName), nil
		}
		if err != nil {
			return err
		}
		return a.verifyRecords(ctx, path)
	})
}

// verifyRecords checks a records file and prints the report.
func (a *app) verifyRecords(ctx context.Context, path string) error {
	report, err := bolt.Verify(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(showReport(a.stdout, path, report), report.Failure(path))
}

// showReport prints the report of a records file check.
func showReport(w io.Writer, path string, r *records.Report) error {
	for _, d := range r.Damage {
		if _, err := fmt.Fprintln(w, d); err != nil {
			return err
		}
	}
	sums := "with checksums"
	if !r.Sealed {
		sums = "without checksums, which the next tracker or import gives them"
	}
	_, err := fmt.Fprintf(w, "%s: %s, %d pages, %d rows %s; %d damaged, %d set aside before\n",
		path, humanize.Bytes(r.SizeBytes), r.Pages, r.Rows, sums, r.Damaged, r.SetAside)
	return err
}
