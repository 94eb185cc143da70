package artifact

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"time"
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
