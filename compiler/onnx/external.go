package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// external is the location of a tensor's bytes outside the model's file, as in a TensorProto's external_data.
// Checksums are ignored: exporters omit them.
type external struct {
	location       string // relative to the model's directory, with slashes
	offset, length int64  // length = 0: as much as the tensor needs
}

// entry reads one key-value pair.
func (e *external) entry(f field) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	var key, value string
	err = eachField(b, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&key)
		case 2:
			return f.text(&value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch key {
	case "location":
		e.location = value
	case "offset":
		e.offset, err = number(key, value)
	case "length":
		e.length, err = number(key, value)
	}
	return err
}

func number(key, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the %s %q of its external data is not a number of bytes", key, value)
	}
	return n, nil
}

// folder is the directory with external data: that of the model. Files are never opened elsewhere, regardless of
// names in the model and of links.
type folder struct {
	dir  string
	root *os.Root // nil before the first file is read
	left int64    // remaining bytes
	// sizes holds the sizes of the files read so far, by name; all is their sum.
	sizes map[string]int64
	all   int64
	// name to size describe the file read last; models have one for all tensors, or one each.
	name string
	file *os.File
	size int64
}

// besides returns the directory of a model, with a limit on the bytes read from its files.
func besides(model string, left int64) *folder { return &folder{dir: filepath.Dir(model), left: left} }

func (d *folder) close() {
	if d.file != nil {
		d.file.Close()
	}
	if d.root != nil {
		d.root.Close()
	}
}

// read returns the given number of bytes of a tensor.
func (d *folder) read(e external, bytes int64) ([]byte, error) {
	if d == nil {
		return nil, fmt.Errorf("its data is in the file %q beside the model: name the model's file, so that it can be found",
			e.location)
	}
	if err := d.open(e.location); err != nil {
		return nil, err
	}
	switch {
	case e.length > 0 && e.length != bytes:
		return nil, fmt.Errorf("it needs %d bytes, but its external data has %d", bytes, e.length)
	case bytes > d.size || e.offset > d.size-bytes:
		return nil, fmt.Errorf("its %d bytes from byte %d on are beyond the end of %s, which has %d: the file was cut short, or is another model's",
			bytes, e.offset, e.location, d.size)
	case bytes > d.left:
		return nil, fmt.Errorf("the model and its external data are over the limit of %d bytes", int64(maxModelBytes))
	}
	d.left -= bytes
	data := make([]byte, bytes)
	if _, err := d.file.ReadAt(data, e.offset); err != nil && err != io.EOF {
		return nil, fmt.Errorf("its external data: %w", err)
	}
	return data, nil
}

// open opens a file of the directory, unless it is open already.
func (d *folder) open(location string) error {
	if d.file != nil && d.name == location {
		return nil
	}
	name := filepath.FromSlash(location)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("its data is in the file %q, which is outside the model's folder: move it there", location)
	}
	if d.root == nil {
		root, err := os.OpenRoot(d.dir)
		if err != nil {
			return fmt.Errorf("its data is beside the model: %w", cause(err))
		}
		d.root = root
	}
	info, err := d.root.Stat(name) // before it is opened, which would block on a pipe
	if err != nil {
		return fmt.Errorf("its data is in the file %q beside the model: %w", location, cause(err))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("its data is in %q, which is not a file", location)
	}
	file, err := d.root.Open(name)
	if err != nil {
		return fmt.Errorf("its data is in the file %q beside the model: %w", location, cause(err))
	}
	if d.file != nil {
		d.file.Close()
	}
	d.name, d.file, d.size = location, file, info.Size()
	return d.count()
}

// count limits the total size of the opened files: each is read whole for its digest.
func (d *folder) count() error {
	if _, counted := d.sizes[d.name]; counted {
		return nil
	}
	if d.size > maxModelBytes-d.all {
		return fmt.Errorf("%s and the other files with external data are over the limit of %d bytes", d.name, int64(maxModelBytes))
	}
	if d.sizes == nil {
		d.sizes = map[string]int64{}
	}
	d.sizes[d.name] = d.size
	d.all += d.size
	return nil
}

// DataFile is an external file with tensor data.
type DataFile struct {
	// Name is relative to the model's directory, with slashes.
	Name  string
	Bytes int64
	// SHA256 is the digest of the whole file, in lower-case hex.
	SHA256 string
}

// files returns the files read so far, by name.
func (d *folder) files() (list []DataFile, err error) {
	if d == nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(d.sizes)) {
		if err := d.open(name); err != nil {
			return nil, err
		}
		sum := sha256.New()
		n, err := io.Copy(sum, io.NewSectionReader(d.file, 0, d.sizes[name]))
		if err == nil && n < d.sizes[name] {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("the file %q beside the model: %w", name, cause(err))
		}
		list = append(list, DataFile{Name: name, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	return list, nil
}
