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

// file is something that takes room: an artifact, or what came of an upload.
type file struct {
	digest, owner, path string
	sizeBytes           int64
	room                int64         // that it counts
	used                time.Time     // last
	place               *list.Element // among what its owner may lose; nil = it must stay
	upload              *upload       // nil for an artifact
	// When the bytes of an artifact were last seen to be its own, and when it was written to, or touched, as far as is
	// known.
	checked, stamp time.Time
	failed         time.Time // when it could not be renewed last; zero = it always could
	entered        time.Time // when this store came to know of the artifact
	aside          bool      // it is damaged, and is being moved, or was
}

// blob is an artifact as Blobs know it. The caller holds the lock where others do; see Store.blobOf.
func (f *file) blob() Blob {
	return Blob{Name: f.path, Digest: f.digest, Owner: f.owner, SizeBytes: f.sizeBytes, Used: f.stamp, Checked: f.checked}
}

// fileOf is an artifact that Blobs know.
func fileOf(b Blob) *file {
	return &file{
		digest: b.Digest, owner: b.Owner, path: b.Name, sizeBytes: b.SizeBytes, used: b.Used, checked: b.Checked, stamp: b.Used,
	}
}

func (s *Store) blobOf(f *file) Blob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.blob()
}

// What a file takes beside its bytes, which come in blocks: file systems are made with an inode for each 16 KiB, and
// run out of them before they run out of blocks when files are smaller.
const (
	blockBytes = 4 << 10
	inodeBytes = 12 << 10
)

// roomOf is what a file of so many bytes counts.
func roomOf(sizeBytes int64) int64 {
	blocks := max(1, (sizeBytes+blockBytes-1)/blockBytes)
	return inodeBytes + blocks*blockBytes
}

// ownerOf shortens the name of an identity to what file names can hold.
func ownerOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:8])
}

// touchEvery spares the disk most of the updates of last uses.
const touchEvery = time.Minute

// touch has a use outlive the process, and be known to who shares the artifact. On a disk it may fail: losing a use
// costs at most an early drop.
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

// drop removes a file and says why. The caller holds the lock.
func (s *Store) drop(f *file, why string) {
	if f.upload == nil {
		s.removeBlob(f.blob())
	} else {
		s.remove(f.path)
	}
	s.forget(f)
	s.stats.Dropped[why]++
}

// removeBlob removes an artifact: in a moment where a server is to be asked, for which the lock does not wait.
func (s *Store) removeBlob(b Blob) {
	if s.shared {
		s.doomed[b.Name] = b
		return
	}
	if err := s.blobs.Remove(context.Background(), b); err != nil {
		s.Logger.Warn("artifact not removed", "file", b.Name, "error", err)
	}
}

// remove removes what came of an upload.
func (s *Store) remove(path string) {
	if err := s.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Logger.Warn("artifact not removed", "file", path, "error", err)
	}
}
