package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/objects"
)

// artifactFlags bounds the artifacts that a tracker stores.
type artifactFlags struct {
	address                            string
	space, uploads, uploadSpace, scrub int
	keep                               time.Duration
}

func (f *artifactFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "artifacts", "", "`address` of an object store for artifacts, which trackers may share: s3://BUCKET/PREFIX?region=REGION (default in --data)")
	c.Flags().IntVar(&f.space, "artifact-space", artifact.DefaultCapBytes/mib, "MiB of artifacts; the least recently used are evicted first")
	c.Flags().DurationVar(&f.keep, "keep-artifacts", 30*24*time.Hour, "how long an artifact is kept after its last use (0 = until space is needed)")
	c.Flags().IntVar(&f.uploads, "max-uploads", artifact.DefaultUploads, "unfinished uploads that an identity may have")
	c.Flags().IntVar(&f.uploadSpace, "max-upload-space", 0, "MiB of unfinished uploads of an identity (0 = half of --artifact-space)")
	c.Flags().IntVar(&f.scrub, "scrub-rate", 4, "MiB of artifacts, and of records, read per second to find damage, each once a day (0 = check only what is used)")
}

func (f *artifactFlags) check() error {
	if f.address != "" {
		if _, err := objects.ParseAddress(f.address); err != nil {
			return usagef("--artifacts: %v", err)
		}
	}
	switch {
	case f.space < 1 || f.space > math.MaxInt32:
		return usagef("--artifact-space %d: want at least 1 MiB", f.space)
	case f.keep < 0:
		return usagef("--keep-artifacts %s: want a time, or 0", f.keep)
	case f.uploads < 1:
		return usagef("--max-uploads %d: want at least 1", f.uploads)
	case f.uploadSpace < 0 || f.uploadSpace > f.space:
		return usagef("--max-upload-space %d: want at most the --artifact-space, %d", f.uploadSpace, f.space)
	case f.scrub < 0 || f.scrub > math.MaxInt32:
		return usagef("--scrub-rate %d: want a number of at least 0", f.scrub)
	}
	return nil
}

func (f *artifactFlags) options() artifact.Options {
	return artifact.Options{
		CapBytes: int64(f.space) * mib, Keep: f.keep, Uploads: f.uploads, UploadBytes: int64(f.uploadSpace) * mib,
		ScrubBytes: int64(f.scrub) * mib,
	}
}
