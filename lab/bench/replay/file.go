package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/internal/disk"
)

// Suffix is the suffix of a set's file name.
const Suffix = ".set.gz"

// maxSetBytes bounds the uncompressed size of a set's file.
const maxSetBytes = 64 << 20

// Write writes a set atomically.
func Write(path string, s *Set) error {
	return disk.WriteFile(path, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(s.write(z), z.Close())
	})
}

func (s *Set) write(w io.Writer) error {
	line, err := HeaderLine(&s.Header)
	if err != nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	for k := range s.Points {
		if line, err = PointLine(&s.Points[k]); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	n := len(s.Points)
	if line, err = encode(pointLine{End: &n}); err != nil {
		return err
	}
	_, err = w.Write(line)
	return err
}

// Read reads a set. It returns an error with the file name if the file is truncated or not a set.
func Read(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer f.Close()
	s, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", path, err)
	}
	return s, nil
}

var errCut = errors.New("it was cut short: copy or record it again")

func decode(r io.Reader) (*Set, error) {
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, errors.New("it is not a recorded set: 'go run ./lab record' makes them")
	}
	data, err := io.ReadAll(io.LimitReader(z, maxSetBytes+1))
	switch {
	case err != nil:
		return nil, errCut
	case len(data) > maxSetBytes:
		return nil, fmt.Errorf("it is larger than %d bytes", maxSetBytes)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	h, err := ParseHeader(lines[0])
	if err != nil {
		return nil, err
	}
	s := &Set{Header: *h}
	for k, line := range lines[1:] {
		p, end, err := ParsePoint(line)
		switch {
		case len(line) == 0:
			return nil, errCut
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", k+2, err)
		case end == len(s.Points) && len(lines[k+2]) == 0:
			return s, nil
		case end >= 0:
			return nil, fmt.Errorf("line %d: the trailer says %d candidates after %d", k+2, end, len(s.Points))
		}
		s.Points = append(s.Points, p)
	}
	return nil, errCut
}

// ReadAll reads the sets of files and folders, in the order given, and within a folder by name.
func ReadAll(paths []string) ([]*Set, error) {
	var sets []*Set
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*"+Suffix)); err != nil {
				return nil, fmt.Errorf("replay: %w", err)
			}
			slices.Sort(files)
			if len(files) == 0 {
				return nil, fmt.Errorf("replay: %s has no recorded sets: 'go run ./lab record -o %s' makes them", path, path)
			}
		}
		for _, file := range files {
			s, err := Read(file)
			if err != nil {
				return nil, err
			}
			sets = append(sets, s)
		}
	}
	return sets, nil
}
