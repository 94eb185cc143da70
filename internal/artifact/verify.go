package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Verified is the result of Verify.
type Verified struct {
	// Files and Bytes count what was read; Damaged counts the files that do not match their digests or cannot be read.
	Files   int
	Bytes   int64
	Damaged []string
}

// Verify reads all artifacts in blobs and compares their digests. A store may be open meanwhile: artifacts that it
// drops are skipped. Verify changes nothing.
func Verify(ctx context.Context, blobs Blobs) (Verified, error) {
	var v Verified
	err := blobs.List(ctx, func(b Blob) error {
		src, err := blobs.Open(ctx, b, 0)
		if err == nil {
			err = readWhole(src, b.Digest, func(b []byte) error {
				v.Bytes += int64(len(b))
				return context.Cause(ctx)
			})
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, ErrDamaged), errors.Is(err, syscall.EIO):
			v.Damaged = append(v.Damaged, b.Digest)
		case err != nil:
			return err
		}
		v.Files++
		return nil
	})
	if err != nil {
		return v, fmt.Errorf("verify artifacts in %s: %w", blobs, err)
	}
	return v, nil
}
