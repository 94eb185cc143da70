package artifact

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// file is an artifact or an unfinished upload that takes space.
type file struct {
	digest, owner, path string
	sizeBytes           int64
	room                int64         // accounted bytes
	used                time.Time     // last use
	place               *list.Element // in its owner's list of files that may be dropped; nil = it must stay
	upload              *upload       // nil for an artifact
	// checked is the last verification of an artifact, stamp its last known write or touch.
	checked, stamp time.Time
	failed         time.Time // last failed renewal; zero = none
	entered        time.Time // when this store first saw the artifact
	aside          bool      // damaged, and moved or being moved
}

// blob describes the artifact for Blobs. The lock must be held if the file is shared between goroutines; see
// Store.blobOf.
func (f *file) blob() Blob {
	return Blob{Name: f.path, Digest: f.digest, Owner: f.owner, SizeBytes: f.sizeBytes, Used: f.stamp, Checked: f.checked}
}

// fileOf returns the file for a blob.
func fileOf(b Blob) *file {
	return &file{digest: b.Digest, owner: b.Owner, path: b.Name, sizeBytes: b.SizeBytes, used: b.Used, checked: b.Checked, stamp: b.Used}
}

func (s *Store) blobOf(f *file) Blob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.blob()
}

// Overhead of a file beyond its bytes, which are allocated in blocks. File systems are created with an inode per 16
// KiB, so small files exhaust inodes before blocks.
const (
	blockBytes = 4 << 10
	inodeBytes = 12 << 10
)

// roomOf returns the bytes that a file of the given size is accounted for.
func roomOf(sizeBytes int64) int64 {
	blocks := max(1, (sizeBytes+blockBytes-1)/blockBytes)
	return inodeBytes + blocks*blockBytes
}

// ownerOf shortens an identity's name to fit into file names.
func ownerOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:8])
}

// touchEvery limits how often uses are written to the disk.
const touchEvery = time.Minute

// touch persists a use, and publishes it to the stores that share the artifact. On a disk it may fail: the cost is at
// most an early drop.
func (s *Store) touch(ctx context.Context, f *file) error {
	if s.shared {
		return s.renew(ctx, f)
	}
	b, now := s.blobOf(f), s.Now()
	if now.Sub(b.Used) < touchEvery {
		return nil
	}
	if touched, err := s.blobs.Touch(ctx, b, now); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.stamp = touched.Used
	}
	return nil
}

// drop removes a file for the given reason. s.mu must be held.
func (s *Store) drop(f *file, why string) {
	if f.upload == nil {
		s.removeBlob(f.blob())
	} else {
		s.remove(f.path)
	}
	s.forget(f)
	s.stats.Dropped[why]++
}

// removeBlob removes an artifact: at once from a folder, later from an object store, since the lock must not wait for
// a server.
func (s *Store) removeBlob(b Blob) {
	if s.shared {
		s.removals[b.Name] = b
		return
	}
	if err := s.blobs.Remove(context.Background(), b); err != nil {
		s.Logger.Warn("artifact not removed", "file", b.Name, "error", err)
	}
}

// remove removes the file of an upload.
func (s *Store) remove(path string) {
	if err := s.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Logger.Warn("artifact not removed", "file", path, "error", err)
	}
}

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
