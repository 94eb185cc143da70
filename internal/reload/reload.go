package reload

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Files is a value made of files. Its methods may be called from many goroutines.
type Files[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu    sync.Mutex
	seen  []stamp // the state that value, or the last complaint about what they say, was made of
	told  []stamp // the state of the last complaint
	value T
}

// stamp tells one state of a file from the next. A file that is replaced by renaming has another inode, one that is
// written in place another time or size.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// New reads the files, which has to succeed this first time.
func New[T any](log *slog.Logger, read func() (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, read: read, log: log, seen: stamps(paths)}
	var err error
	f.value, err = read()
	return f, err
}

// Get returns the value of the files as they are now. While they cannot be read, or make no sense, it is the last that
// could be, and the log says so once for each change: half a change must not lock everybody out.
func (f *Files[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Before reading: what changes meanwhile is seen the next time.
	now := stamps(f.paths)
	if slices.Equal(now, f.seen) {
		return f.value
	}
	value, err := f.read()
	if err != nil {
		f.complain(now, err)
		return f.value
	}
	f.seen, f.value = now, value
	f.log.Info("files read again", "files", strings.Join(f.paths, ", "))
	return value
}

// complain tells once of a change that cannot be used. What could not even be opened, as when there are too many open
// files, is tried again the next time; what was read is not, until it changes.
func (f *Files[T]) complain(now []stamp, err error) {
	if !slices.Equal(now, f.told) {
		f.told = now
		f.log.Error("files changed but cannot be used, going on with the last good ones", "files", strings.Join(f.paths, ", "), "error", err)
	}
	if _, unopened := errors.AsType[*fs.PathError](err); !unopened {
		f.seen = now
	}
}

func stamps(paths []string) []stamp {
	out := make([]stamp, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		out[i] = stamp{modified: info.ModTime(), size: info.Size()}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			out[i].inode = s.Ino
		}
	}
	return out
}
