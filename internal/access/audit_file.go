package access

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// AuditFile is a rotated log file: FILE, and before it FILE.1, FILE.2 and so on, the oldest last. A crash of the
// process leaves whole lines. A crash of the machine may cut the last line of FILE, because writes are not synced.
type AuditFile struct {
	path     string
	maxBytes int64
	keep     int

	file *os.File
	size int64
}

// Defaults of OpenAuditFile.
const (
	DefaultAuditBytes = 64 << 20
	DefaultAuditFiles = 8
)

// OpenAuditFile opens the file at path for appending and creates it if necessary. The file is rotated at maxBytes
// bytes (0 = DefaultAuditBytes); keep rotated files are retained (0 = DefaultAuditFiles).
func OpenAuditFile(path string, maxBytes int64, keep int) (*AuditFile, error) {
	maxBytes = cmp.Or(maxBytes, DefaultAuditBytes)
	keep = cmp.Or(keep, DefaultAuditFiles)
	f := &AuditFile{path: path, maxBytes: maxBytes, keep: keep}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("audit log: %w: make its folder, or name another file", err)
	}
	return f, nil
}

func (f *AuditFile) open() error {
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

// Write implements io.Writer for one line. After a short write it truncates the file to the lines before.
func (f *AuditFile) Write(line []byte) (int, error) {
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
		// A partial line would corrupt the next one.
		return 0, errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return n, nil
}

// rotate renames the full files and opens an empty one. If it fails midway, the next call continues: a missing name
// has already been renamed.
func (f *AuditFile) rotate() error {
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

func (f *AuditFile) name(i int) string {
	if i == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, i)
}

// Close implements io.Closer.
func (f *AuditFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
