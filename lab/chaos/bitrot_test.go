package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/records"
)

// rottedName is the file with the digests of damaged artifacts, one per line, beside the journals.
const rottedName = "rotted"

// rotArtifact flips a bit of a recent artifact: the last one, or the back-th before it.
func (r *round) rotArtifact(back int, bit int64) {
	stored := storedArtifacts(filepath.Join(r.farm.data(), artifactsName))
	if len(stored) == 0 {
		return
	}
	path := stored[len(stored)-1-min(back, len(stored)-1)]
	// Logged first, so that the journal has every change.
	if err := appendLine(filepath.Join(r.farm.journals(), rottedName), filepath.Base(path)); err != nil {
		r.died(err.Error())
		return
	}
	if err := flipBit(path, bit); err != nil && !errors.Is(err, fs.ErrNotExist) { // set aside meanwhile
		r.died(err.Error())
	}
}

// storedArtifacts returns the paths of a store's complete artifacts, oldest first.
func storedArtifacts(dir string) (paths []string) {
	modified := map[string]int64{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !records.ValidDigest(d.Name()) {
			return nil // files may vanish
		}
		if info, err := d.Info(); err == nil {
			modified[path] = info.ModTime().UnixNano()
			paths = append(paths, path)
		}
		return nil
	})
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(modified[a], modified[b]), strings.Compare(a, b))
	})
	return paths
}

// flipBit flips one bit of a file without changing its times. The index wraps around at the end of the file.
func flipBit(path string, bit int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	at := bit / 8 % info.Size()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := f.WriteAt(b[:], at); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// readRotted returns the digests of damaged artifacts.
func readRotted(journals string) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(journals, rottedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rotted := map[string]bool{}
	for digest := range strings.FieldsSeq(string(text)) {
		rotted[digest] = true
	}
	return rotted, nil
}
