package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// File is a file that others take the place of when it is full: FILE, and before it FILE.1, FILE.2 and so on, the
// oldest last. A crash at any time leaves whole lines, except the last one of FILE at a crash of the machine: lines
// are handed to the system, and not awaited on the disk.
type File struct {
	path     string
	maxBytes int64
	keep     int

	file *os.File
	size int64
}

// Defaults of OpenFile.
const (
	DefaultMaxBytes = 64 << 20
	DefaultKeep     = 8
)

// OpenFile opens the file at path for appending, and makes it when it is missing. It is full at maxBytes bytes (0 =
// DefaultMaxBytes); so many full ones are kept (0 = DefaultKeep).
func OpenFile(path string, maxBytes int64, keep int) (*File, error) {
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	if keep == 0 {
		keep = DefaultKeep
	}
	f := &File{path: path, maxBytes: maxBytes, keep: keep}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("audit log: %w: make its folder, or name another file", err)
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements io.Writer for one line. It writes all of it or, as far as the disk allows, nothing.
func (f *File) Write(line []byte) (int, error) {
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.size > 0 && f.size+int64(len(line)) > f.maxBytes {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	if err != nil {
		// Half a line would spoil the next one.
		return 0, errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return n, nil
}

// rotate gives the full files their new names and begins another. After a failure midway the next one goes on: a name
// that is not there has been given its new one.
func (f *File) rotate() error {
	err := f.file.Close()
	f.file = nil
	if err != nil {
		return err
	}
	for i := f.keep - 1; i >= 0; i-- {
		if err := os.Rename(f.name(i), f.name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.open()
}

func (f *File) name(i int) string {
	if i == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, i)
}

// Close implements io.Closer.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
