package filesystem

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CheckWritable returns an error if WriteFile cannot write a file at path: it is a folder, or its folder is missing or
// read-only. Commands call it before they begin work of which the file is the result.
func CheckWritable(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	if err == nil && info.IsDir() {
		return fmt.Errorf("write %s: it is a folder: name a file", path)
	}
	f, err := temporary(path)
	if err != nil {
		if cause, is := errors.AsType[*fs.PathError](err); is {
			err = cause.Err
		}
		return fmt.Errorf("write %s: folder %s: %w: name a file in a folder that can be written", path, filepath.Dir(path), err)
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// WriteFile replaces the file at path by the output of fill once all of it is on disk. On failure it leaves
// nothing behind. The next WriteFile of the same path removes temporary files of a killed process. An existing
// path that is not a regular file, such as /dev/stdout, is written directly.
func WriteFile(path string, fill func(io.Writer) error) error {
	return write(path, fill, func(f *os.File, _ fs.FileInfo) error { return f.Chmod(0o644) })
}

// WritePrivateFile is WriteFile for a file that only its owner may read. A replaced file keeps its owner, so that
// root can write a file that a service reads.
func WritePrivateFile(path string, fill func(io.Writer) error) error {
	return write(path, fill, func(f *os.File, old fs.FileInfo) error {
		return errors.Join(f.Chmod(0o600), keepOwner(f, old))
	})
}

// keepOwner gives a file the owner of the file that it replaces, if any.
func keepOwner(f *os.File, old fs.FileInfo) error {
	if old == nil {
		return nil
	}
	owner, is := old.Sys().(*syscall.Stat_t)
	if !is || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
		return fmt.Errorf("it belongs to user %d, do this as that user: %w", owner.Uid, err)
	}
	return nil
}

// write calls settle to set the mode and owner of the new file; old is the replaced file, if any.
func write(path string, fill func(io.Writer) error, settle func(f *os.File, old fs.FileInfo) error) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return fmt.Errorf("write %s: it is a folder: name a file", path)
	}
	if err == nil && !info.Mode().IsRegular() {
		return direct(path, fill)
	}
	f, err := temporary(path)
	if err != nil {
		return explain(path, err)
	}
	err = errors.Join(buffered(f, fill), settle(f, info), f.Sync())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return explain(path, errors.Join(err, os.Remove(f.Name()), f.Close()))
	}
	// The file is closed, and its lock released, after the rename.
	if err := errors.Join(SyncFolder(filepath.Dir(path)), f.Close()); err != nil {
		return explain(path, err)
	}
	return nil
}

func direct(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return explain(path, err)
	}
	if err := errors.Join(buffered(f, fill), f.Close()); err != nil {
		return explain(path, err)
	}
	return nil
}

func buffered(w io.Writer, fill func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 1<<20)
	if err := fill(b); err != nil {
		return err
	}
	return b.Flush()
}

// explain replaces the temporary name in an error by the requested one.
func explain(path string, err error) error {
	if cause, is := errors.AsType[*fs.PathError](err); is {
		err = cause.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}

// maxAtOnce bounds the concurrent writers of a file whose temporary names the next writer knows.
const maxAtOnce = 16

// temporary creates a temporary file that will replace the one at path. It is locked while its process lives,
// and has a predictable name, so that the next writer of path removes files of killed processes.
func temporary(path string) (f *os.File, err error) {
	dir, base := filepath.Split(path)
	for n := 0; n < maxAtOnce; n++ {
		name := fmt.Sprintf("%s.%s.%d.part", dir, base, n)
		for abandoned(name) && f == nil {
			if f, err = claim(name); err != nil {
				return nil, err
			}
		}
	}
	if f == nil {
		return os.CreateTemp(filepath.Dir(path), "."+base+".*.part")
	}
	return f, nil
}

// claim creates and locks a file. It returns nil without an error if the file exists or existed briefly.
func claim(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// If the file system does not support locks, other processes never treat the file as abandoned.
	switch err := lock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !in(name, f):
		return nil, f.Close() // another process considered it abandoned before it was locked
	}
	return f, nil
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// in reports whether a file still has its name.
func in(name string, f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(own, there)
}

// abandoned removes an unlocked file of this user. It returns false if the file must stay.
func abandoned(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return false
	}
	if err := lock(f); err != nil {
		return false
	}
	return !in(name, f) || os.Remove(name) == nil
}
