package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/records"
)

// folder stores artifacts as files, in subfolders named by digest prefix. Blob names are paths.
type folder struct {
	dir string
	fs  FS
}

// Folder returns Blobs stored in a folder.
func Folder(dir string) Blobs { return folder{dir, OS{}} }

// String implements Blobs.
func (f folder) String() string { return f.dir }

// Extended attributes of files; if the file system does not support them, a restart loses the values.
const (
	ownerAttribute   = "user.tilth.owner"
	checkedAttribute = "user.tilth.checked"
)

// List implements Blobs. Files removed meanwhile are skipped.
func (f folder) List(_ context.Context, each func(Blob) error) error {
	return filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || !records.ValidDigest(d.Name()) {
			return nil
		}
		b, err := f.at(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return each(b)
	})
}

// Find implements Blobs.
func (f folder) Find(_ context.Context, digest string) (Blob, error) {
	return f.at(filepath.Join(f.dir, digest[:2], digest))
}

func (f folder) at(path string) (Blob, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Blob{}, err
	}
	b := Blob{
		Name: path, Digest: filepath.Base(path), Owner: filesystem.Attribute(path, ownerAttribute),
		SizeBytes: info.Size(), Used: info.ModTime(),
	}
	if at, err := strconv.ParseInt(filesystem.Attribute(path, checkedAttribute), 10, 64); err == nil {
		b.Checked = time.Unix(at, 0)
	}
	return b, nil
}

// Put implements Blobs. The file is already in the right subfolder, and is renamed.
func (f folder) Put(_ context.Context, b Blob, path string) (Blob, error) {
	b.Name = path
	f.Note(b)
	// gofail: var beforeArtifactRename struct{}
	if err := f.fs.Rename(path, filepath.Join(filepath.Dir(path), b.Digest)); err != nil {
		return b, err
	}
	b.Name = filepath.Join(filepath.Dir(path), b.Digest)
	// gofail: var afterArtifactRename struct{}
	b.Used = modified(b.Name)
	return b, f.fs.SyncDir(filepath.Dir(b.Name))
}

// Open implements Blobs.
func (f folder) Open(_ context.Context, b Blob, offset int64) (io.ReadCloser, error) {
	src, err := f.fs.Open(b.Name)
	if err != nil {
		return nil, err
	}
	if offset == 0 {
		return src, nil
	}
	if _, err := src.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// Touch implements Blobs by setting the file's modification time. It leaves a file alone that something else has
// written to, so that the change can be detected.
func (f folder) Touch(_ context.Context, b Blob, at time.Time) (Blob, error) {
	if !modified(b.Name).Equal(b.Used) {
		return b, nil
	}
	if err := os.Chtimes(b.Name, time.Time{}, at); err != nil {
		return b, err
	}
	b.Used = modified(b.Name)
	return b, nil
}

// Written implements Blobs.
func (f folder) Written(b Blob) time.Time { return modified(b.Name) }

// modified returns a file's modification time; zero if there is no file.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Note implements Blobs.
func (f folder) Note(b Blob) {
	_ = filesystem.SetAttribute(b.Name, ownerAttribute, b.Owner)
	_ = filesystem.SetAttribute(b.Name, checkedAttribute, strconv.FormatInt(b.Checked.Unix(), 10))
}

// Remove implements Blobs.
func (f folder) Remove(_ context.Context, b Blob) error {
	if err := f.fs.Remove(b.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Only the last few damaged artifacts are kept.
const (
	damagedName     = "damaged"
	damagedSuffix   = ".damaged"
	damagedFiles    = 8
	damagedMaxBytes = 256 << 20
)

// SetAside implements Blobs.
func (f folder) SetAside(_ context.Context, b Blob) error {
	dir := filepath.Join(f.dir, damagedName)
	if err := f.fs.MakeDir(dir); err != nil {
		return err
	}
	err := f.fs.Rename(b.Name, filepath.Join(dir, b.Digest+damagedSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone already, which was the damage
	}
	if err != nil {
		return err
	}
	return f.boundAside(dir)
}

// boundAside removes the oldest artifacts that were set aside.
func (f folder) boundAside(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var kept []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var bytes int64
	for i, info := range kept {
		if bytes += info.Size(); i >= damagedFiles || bytes > damagedMaxBytes {
			err = errors.Join(err, f.fs.Remove(filepath.Join(dir, info.Name())))
		}
	}
	return err
}

// Tidy implements Blobs. Unfinished uploads are managed by the Store.
func (f folder) Tidy(context.Context, time.Time) error { return nil }

// Ready implements Blobs.
func (f folder) Ready(context.Context) error {
	if _, err := os.Stat(f.dir); err != nil {
		return fmt.Errorf("the folder of artifacts cannot be looked at: %w", err)
	}
	return nil
}
