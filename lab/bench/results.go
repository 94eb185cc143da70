package bench

import (
	"os"
	"path/filepath"
)

// Folder is the folder of results in the repository.
const Folder = "lab/bench/results"

// Row is a repeatable measurement. Of two rows that are the same, the later one replaces the earlier one.
type Row[T any] interface{ Same(T) bool }

// File holds the rows of one benchmark on one kind of machine.
type File[T Row[T]] struct {
	path string
	// Rows are in order of first measurement.
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

// Machines returns the sorted names of the machines with rows of a benchmark.
func Machines(folder, name string) (machines []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", name+".jsonl")) // sorted
	for _, file := range files {
		machines = append(machines, filepath.Base(filepath.Dir(file)))
	}
	return machines, err
}

// Add adds rows, replaces the same earlier ones, and writes the file.
func (f *File[T]) Add(rows []T) error {
	for _, row := range rows {
		f.put(row)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	return Write(f.path, f.Rows)
}

// Find returns the row that is the same as another one, or nil.
func (f *File[T]) Find(like T) *T {
	for k := range f.Rows {
		if f.Rows[k].Same(like) {
			return &f.Rows[k]
		}
	}
	return nil
}

func (f *File[T]) put(row T) {
	if earlier := f.Find(row); earlier != nil {
		*earlier = row
	} else {
		f.Rows = append(f.Rows, row)
	}
}
