package artifact

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/tilth-dev/tilth/internal/disk"
)

// FS is what the store does to files that can fail; tests put a failing one here.
type FS interface {
	// Open opens a file for reading.
	Open(path string) (io.ReadSeekCloser, error)
	// OpenAppend opens a file for appending and creates it when there is none.
	OpenAppend(path string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// MakeDir makes a folder in one that is there; one that is there already is no error.
	MakeDir(path string) error
	// SyncDir brings the names in a folder to the disk.
	SyncDir(path string) error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// OS is the machine's file system.
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
func (OS) SyncDir(path string) error { return disk.SyncFolder(path) }
