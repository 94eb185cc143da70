package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

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
		Example: "  tilth tracker verify --data /var/lib/tilth/tracker", Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&address, "artifacts", "", "`address` of the tracker's object store; see tilth tracker (default the artifacts in --data)")
	c.Flags().StringVar(&data, "data", "", "the tracker's `folder` (default $XDG_DATA_HOME/tilth/tracker)")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		dir, err := orDefault(data, "tracker")
		if err != nil {
			return err
		}
		err = a.verifyArtifacts(ctx, filepath.Join(dir, "artifacts"), address)
		if errors.Is(err, fs.ErrNotExist) {
			return err // not a tracker's folder
		}
		return errors.Join(err, a.verifyRecords(ctx, filepath.Join(dir, recordsName)))
	})
}

// verifyRecords checks a records file, unless a tracker holds it.
func (a *app) verifyRecords(ctx context.Context, path string) error {
	report, err := bolt.Verify(ctx, path)
	if errors.Is(err, records.ErrLocked) {
		_, err = fmt.Fprintf(a.stdout, "%s: not checked, a tracker has it: verify a backup of it\n", path)
		return err
	}
	if err != nil {
		return err
	}
	return errors.Join(showReport(a.stdout, path, report), report.Failure(path))
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
