package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeFolder creates a folder and missing parents so that they survive a power failure. It also syncs an
// existing folder, whose creator may have been killed before doing so.
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

// SyncFolder syncs the names in a folder. It ignores folders that it may not read.
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
