package results

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is where the tree keeps results.
const Folder = "lab/bench/results"

// A Row is of something that is measured again and again: of two that are the same, the later one counts.
type Row[T any] interface{ Same(T) bool }

// File has the rows of one benchmark on one kind of machine.
type File[T Row[T]] struct {
	path string
	// Rows are in the order in which they were first measured.
	Rows []T
}

// Open reads the rows of a machine, named by target.Target.Processor, or none if it has no file. name is the
// file name without its extension.
func Open[T Row[T]](folder, machine, name string) (*File[T], error) {
	f := &File[T]{path: filepath.Join(folder, machine, name+".jsonl")}
	rows, err := Read[T](f.path)
	for _, row := range rows {
		f.put(row)
	}
	return f, err
}

// Machines are those that have rows of a benchmark, sorted by their names.
func Machines(folder, name string) (machines []string, err error) {
	list, err := os.ReadDir(folder) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, one := range list {
		if _, err := os.Stat(filepath.Join(folder, one.Name(), name+".jsonl")); err == nil {
			machines = append(machines, one.Name())
		}
	}
	return machines, err
}

// Add keeps rows in place of those that they are the same as, and writes the file.
func (f *File[T]) Add(rows []T) error {
	for _, row := range rows {
		f.put(row)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	return Write(f.path, f.Rows)
}

func (f *File[T]) put(row T) {
	for k := range f.Rows {
		if f.Rows[k].Same(row) {
			f.Rows[k] = row
			return
		}
	}
	f.Rows = append(f.Rows, row)
}
