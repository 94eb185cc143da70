package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// maxLine is the maximum size of a row in bytes.
const maxLine = 1 << 20

// Read reads the rows of a file, or none if it does not exist. Errors name the file and line.
func Read[T any](path string) (rows []T, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", path, len(rows)+1, err)
	}
	return rows, nil
}

// Append appends rows to a file. It creates the file if necessary.
func Append[T any](path string, rows []T) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return encode(f, rows)
}

// Write replaces a file by one with the given rows.
func Write[T any](path string, rows []T) error {
	return filesystem.WriteFile(path, func(w io.Writer) error { return encode(w, rows) })
}

func encode[T any](w io.Writer, rows []T) error {
	encoder := json.NewEncoder(w)
	for _, row := range rows {
		if err := encoder.Encode(row); err != nil {
			return err
		}
	}
	return nil
}
