package npz

import (
	"archive/zip"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Limits on the input of Read.
const (
	maxArrays     = 4096
	maxArrayBytes = 4 << 30
	maxTotalBytes = 8 << 30
)

// ReadFile reads the arrays of an archive by name, without the suffix .npy. The array of a .npy file has an empty
// name.
func ReadFile(path string) (map[string]*array.Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read arrays: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read arrays: %w", err)
	}
	arrays := map[string]*array.Array{}
	begin := make([]byte, len(magic))
	if _, short := f.ReadAt(begin, 0); short == nil && string(begin) == magic {
		arrays[""], err = readArray(f)
	} else {
		arrays, err = Read(f, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("read arrays %s: %w", path, err)
	}
	return arrays, nil
}

// Read is like ReadFile for an open archive of the given size.
func Read(r io.ReaderAt, size int64) (map[string]*array.Array, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not an .npz archive: %w", err)
	}
	if len(z.File) > maxArrays {
		return nil, fmt.Errorf("%d arrays are over the limit of %d", len(z.File), maxArrays)
	}
	arrays := map[string]*array.Array{}
	total := int64(0)
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			return nil, fmt.Errorf("entry %q is not a .npy array", f.Name)
		}
		a, err := readEntry(f)
		if err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		if arrays[name] != nil {
			return nil, fmt.Errorf("array %q appears twice", name)
		}
		if total += int64(len(a.Data)); total > maxTotalBytes {
			return nil, fmt.Errorf("the arrays are over the limit of %d bytes", int64(maxTotalBytes))
		}
		arrays[name] = a
	}
	return arrays, nil
}

func readEntry(f *zip.File) (*array.Array, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readArray(r)
}

// Write writes arrays as an archive, in the order of their names, stored without compression. Equal arrays give equal
// bytes.
func Write(w io.Writer, arrays map[string]*array.Array) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := writeArray(f, arrays[name]); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return z.Close()
}
