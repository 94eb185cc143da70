package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Blob describes an artifact kept by Blobs.
type Blob struct {
	// Name is the unique location of the blob.
	Name string
	// Digest is the SHA-256 of the content. Owner is the identity that the space is accounted to.
	Digest, Owner string
	SizeBytes     int64
	// Used is when the blob was last put or touched, by the clock of the writer or of the server.
	Used time.Time
	// Checked is when the content was last verified; zero = unknown.
	Checked time.Time
}

// Blobs store whole artifacts: in a folder, or in an object store shared by several Stores. Retention and verification
// are left to the Store. Methods return fs.ErrNotExist if there is no such blob, and ErrAway while the object store is
// unavailable; the next call may succeed.
type Blobs interface {
	// String returns the location of the blobs, for messages.
	String() string
	// List calls each for all blobs in any order until it fails. A blob touched meanwhile is listed at least once.
	List(ctx context.Context, each func(Blob) error) error
	// Find returns the blob of a digest; if there are several, the most recently used.
	Find(ctx context.Context, digest string) (Blob, error)
	// Put stores a synced local file as a blob with b.Digest, b.Used and b.Checked. It may move the file.
	Put(ctx context.Context, b Blob, path string) (Blob, error)
	// Open reads a blob from an offset. A truncated blob reads as a shorter one.
	Open(ctx context.Context, b Blob, offset int64) (io.ReadCloser, error)
	// Touch records a use of a blob for all Stores that share it. The returned blob may have another name; the former
	// name may then be invalid.
	Touch(ctx context.Context, b Blob, at time.Time) (Blob, error)
	// Written returns when a blob was last written, if that is cheap to determine; otherwise b.Used.
	Written(b Blob) time.Time
	// Note persists b.Checked where possible.
	Note(b Blob)
	// Remove removes a blob. A missing blob is not an error.
	Remove(ctx context.Context, b Blob) error
	// SetAside keeps a damaged blob for inspection, out of reach of List.
	SetAside(ctx context.Context, b Blob) error
	// Tidy removes the remains of transfers interrupted before an instant.
	Tidy(ctx context.Context, before time.Time) error
	// Ready returns an error while blobs cannot be stored.
	Ready(ctx context.Context) error
}

// Part is one of Count partitions of the artifacts by digest. A Store with shared Blobs drops and verifies only its
// own part. The zero value includes all artifacts.
type Part struct{ Index, Count int }

// Has reports whether an artifact belongs to the part.
func (p Part) Has(digest string) bool {
	if p.Count <= 1 {
		return true
	}
	n := 0
	for _, c := range []byte(digest[:4]) {
		n = n*31 + int(c)
	}
	return n%p.Count == p.Index
}

// FS is the set of file operations of the store that can fail; tests inject failures here.
type FS interface {
	// Open opens a file for reading.
	Open(path string) (io.ReadSeekCloser, error)
	// OpenAppend opens a file for appending, and creates it if necessary.
	OpenAppend(path string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// MakeDir creates a folder within an existing one; an existing folder is not an error.
	MakeDir(path string) error
	// SyncDir syncs a folder's entries.
	SyncDir(path string) error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// OS is the operating system's file system.
type OS struct{}

// Open implements FS.
func (OS) Open(path string) (io.ReadSeekCloser, error) { return os.Open(path) }

// OpenAppend implements FS.
func (OS) OpenAppend(path string) (File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
}

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(path string) error { return os.Remove(path) }

// MakeDir implements FS.
func (OS) MakeDir(path string) error {
	err := os.Mkdir(path, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// SyncDir implements FS.
func (OS) SyncDir(path string) error { return filesystem.SyncFolder(path) }

// setAside removes a damaged artifact from the store, unless it was replaced or set aside already. An object in a
// shared store is moved without holding the lock, which must not wait for servers; no other artifact ever has its
// name. Meanwhile a listing may forget the artifact, and it may be stored again.
func (s *Store) setAside(f *file, cause error) {
	s.mu.Lock()
	if f.aside || s.files[f.digest] != f {
		s.mu.Unlock()
		return
	}
	f.aside = true
	if s.shared {
		b := f.blob()
		s.mu.Unlock()
		s.moveAside(b)
		s.mu.Lock()
	} else {
		s.moveAside(f.blob())
	}
	now := s.files[f.digest]
	if now == f {
		s.forget(f)
	}
	s.stats.Dropped[droppedDamaged]++
	s.mu.Unlock()
	s.Logger.Error("artifact damaged: check the disk", "artifact", f.digest, "bytes", f.sizeBytes, "error", cause)
	if now == nil || now == f {
		s.Damaged(f.digest)
	}
}

func (s *Store) moveAside(b Blob) {
	err := s.blobs.SetAside(context.Background(), b)
	if err == nil {
		return
	}
	s.Logger.Warn("damaged artifact not kept", "artifact", b.Digest, "error", err)
	if s.shared {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.removeBlob(b)
}

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
