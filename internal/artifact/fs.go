package artifact

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

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
