package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeFolder makes a folder, and those above it that are missing, so that they outlive a power cut. One that is there
// already may have been made by a process that was killed before it got that far, so its name is brought to the disk
// all the same.
func MakeFolder(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	above := filepath.Dir(path)
	err := os.Mkdir(path, mode)
	if errors.Is(err, fs.ErrNotExist) && above != path {
		if err := MakeFolder(above, mode); err != nil {
			return err
		}
		err = os.Mkdir(path, mode)
	}
	if info, statErr := os.Stat(path); err != nil && (statErr != nil || !info.IsDir()) {
		return err
	}
	return SyncFolder(above)
}

// SyncFolder brings the names in a folder to the disk. One that may not be read is left to the system.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
