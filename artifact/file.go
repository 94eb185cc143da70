package artifact

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/tilth-dev/tilth/internal/disk"
)

// file is something that takes room: an artifact, or what came of an upload.
type file struct {
	digest, owner, path string
	sizeBytes           int64
	room                int64         // that it counts
	used                time.Time     // last
	place               *list.Element // among what its owner may lose; nil = it must stay
	upload              *upload       // nil for an artifact
	// When the bytes of an artifact were last seen to be its own, and when the file was written to, as far as is
	// known.
	checked, stamp time.Time
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

// Attributes of files; where the file system has none, a restart forgets them.
const (
	ownerAttribute   = "user.tilth.owner"
	checkedAttribute = "user.tilth.checked"
)

// remember writes down whose an artifact is, and when it was checked.
func (f *file) remember() {
	_ = disk.SetAttribute(f.path, ownerAttribute, f.owner)
	_ = disk.SetAttribute(f.path, checkedAttribute, strconv.FormatInt(f.checked.Unix(), 10))
}

// recall reads what was written down of an artifact.
func (f *file) recall() {
	f.owner = disk.Attribute(f.path, ownerAttribute)
	if at, err := strconv.ParseInt(disk.Attribute(f.path, checkedAttribute), 10, 64); err == nil {
		f.checked = time.Unix(at, 0)
	}
}

// touchEvery spares the disk most of the updates of last uses.
const touchEvery = time.Minute

// touch has a use outlive the process, as the file's time; losing that costs at most an early drop. A file that
// somebody else wrote to keeps its time, by which that is seen.
func (s *Store) touch(f *file, stamp time.Time) {
	now := s.Now()
	if now.Sub(stamp) < touchEvery || !modified(f.path).Equal(stamp) || os.Chtimes(f.path, time.Time{}, now) != nil {
		return
	}
	stamp = modified(f.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.stamp = stamp
}

// modified is when a file was last written to; zero when there is none.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// drop removes a file and says why. The caller holds the lock.
func (s *Store) drop(f *file, why string) {
	s.remove(f.path)
	s.forget(f)
	s.stats.Dropped[why]++
}

func (s *Store) remove(path string) {
	if err := s.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Logger.Warn("artifact not removed", "file", path, "error", err)
	}
}
