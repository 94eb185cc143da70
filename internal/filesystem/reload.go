package filesystem

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

// Reloaded is a value read from files. It is safe for concurrent use.
type Reloaded[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu         sync.Mutex
	seen       []stamp // state of the files behind value, or behind the last complaint about their content
	complained []stamp // state of the files at the last complaint
	value      T
}

// stamp identifies the state of a file. Renaming changes the inode; writing in place changes the time or size.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// Reload reads the files, which must succeed the first time.
func Reload[T any](log *slog.Logger, read func() (T, error), paths ...string) (*Reloaded[T], error) {
	f := &Reloaded[T]{paths: paths, read: read, log: log, seen: stamps(paths)}
	var err error
	f.value, err = read()
	return f, err
}

// Get returns the current value of the files. If they cannot be read or are invalid, it returns the last valid value
// and logs each change once, so that a partial write does not revoke anyone's access.
func (f *Reloaded[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Taken before reading, so that concurrent changes are seen the next time.
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

// complain logs an unusable change once. Files that could not be opened, for example for lack of descriptors,
// are retried the next time; invalid content is not, until it changes.
func (f *Reloaded[T]) complain(now []stamp, err error) {
	if !slices.Equal(now, f.complained) {
		f.complained = now
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
