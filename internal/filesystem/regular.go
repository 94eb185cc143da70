package filesystem

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a file for reading. It refuses pipes, devices and sockets, and does not wait for the writer of a
// pipe. Reading fails if the file is a folder.
func OpenRegular(path string) (*os.File, error) {
	return regular(os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0))
}

// Text returns the text of a small file, such as those of sysfs, without surrounding space; "" if it cannot be read.
func Text(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ReadRegularIn reads a regular file of at most limit bytes in a folder, which links must not leave.
func ReadRegularIn(folder, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := regular(root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, err
}

func regular(f *os.File, err error) (*os.File, error) {
	if at := (*fs.PathError)(nil); errors.As(err, &at) && errors.Is(err, unix.ENXIO) { // a socket, or a device without a driver
		return nil, fmt.Errorf("%s is not a regular file", at.Path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = fmt.Errorf("%s is not a regular file", f.Name())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
