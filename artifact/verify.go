package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/tilth-dev/tilth/records"
)

// Verified is what Verify found.
type Verified struct {
	// Files were read, Bytes of them; Damaged of them have other bytes than their names say, or cannot be read.
	Files   int
	Bytes   int64
	Damaged []string
}

// Verify reads all artifacts in a store's folder and compares them with their digests. A store may be open on it
// meanwhile: what it drops is passed over. Nothing is changed.
func Verify(ctx context.Context, dir string) (Verified, error) {
	var v Verified
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !records.ValidDigest(d.Name()) {
			return err
		}
		err = readWhole(OS{}, path, d.Name(), func(b []byte) error {
			v.Bytes += int64(len(b))
			return context.Cause(ctx)
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, ErrDamaged), errors.Is(err, syscall.EIO):
			v.Damaged = append(v.Damaged, d.Name())
		case err != nil:
			return err
		}
		v.Files++
		return nil
	})
	if err != nil {
		return v, fmt.Errorf("verify artifacts in %s: %w", dir, err)
	}
	return v, nil
}
