package records

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ExportVersion is the version of the export format. Files of other versions are refused.
const ExportVersion = 1

const (
	exportFormat = "tilth-records"
	maxLineBytes = 64 << 20
)

type exportHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// exportTrailer is the last line. A file without it is truncated.
type exportTrailer struct {
	End     bool   `json:"end"`
	Records uint64 `json:"records"`
}

// Writer writes records as JSON lines: a header, one record per line and, on Close, a trailer with their number.
type Writer struct {
	w     *bufio.Writer
	count uint64
}

// NewWriter starts an export to w.
func NewWriter(w io.Writer) (*Writer, error) {
	e := &Writer{w: bufio.NewWriter(w)}
	return e, e.line(exportHeader{Format: exportFormat, Version: ExportVersion})
}

// Write writes one record.
func (e *Writer) Write(r *tilthv1.Record) error {
	b, err := protojson.Marshal(r)
	if err != nil {
		return fmt.Errorf("export record: %w", err)
	}
	// protojson varies its white space on purpose; compacting makes the output deterministic.
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return fmt.Errorf("export record: %w", err)
	}
	compact.WriteByte('\n')
	e.count++
	_, err = e.w.Write(compact.Bytes())
	return err
}

// Close writes the trailer. It does not close the underlying writer.
func (e *Writer) Close() error {
	return errors.Join(e.line(exportTrailer{End: true, Records: e.count}), e.w.Flush())
}

func (e *Writer) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = e.w.Write(append(b, '\n'))
	return err
}

// Reader reads and validates the records of an export.
type Reader struct {
	lines *bufio.Scanner
	line  int
	count uint64
	done  bool
}

// NewReader reads the header of an export. It returns ErrDamaged if r is not an export, and ErrVersion for another
// version.
func NewReader(r io.Reader) (*Reader, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	reader := &Reader{lines: lines}
	b, err := reader.next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it is empty", ErrDamaged)
	} else if err != nil {
		return nil, err
	}
	var header exportHeader
	if err := json.Unmarshal(b, &header); err != nil || header.Format != exportFormat {
		return nil, fmt.Errorf("%w: the first line is not the header of a records export", ErrDamaged)
	}
	if header.Version != ExportVersion {
		return nil, fmt.Errorf("%w: export format %d, this one reads %d", ErrVersion, header.Version, ExportVersion)
	}
	return reader, nil
}

// Read returns the next record, and io.EOF after the last of a complete export. It returns ErrDamaged if the export is
// truncated.
func (r *Reader) Read() (*tilthv1.Record, error) {
	record, err := r.ReadAny()
	if err != nil {
		return nil, err
	}
	if err := Validate(record); err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	return record, nil
}

// ReadAny is like Read without validation, for callers that continue after invalid records.
func (r *Reader) ReadAny() (*tilthv1.Record, error) {
	if r.done {
		return nil, io.EOF
	}
	b, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: cut short after line %d", ErrDamaged, r.line)
	} else if err != nil {
		return nil, err
	}
	var trailer exportTrailer
	if json.Unmarshal(b, &trailer) == nil && trailer.End {
		return nil, r.end(trailer)
	}
	record := &tilthv1.Record{}
	if err := protojson.Unmarshal(b, record); err != nil {
		return nil, fmt.Errorf("line %d: %w: %v", r.line, ErrDamaged, err)
	}
	r.count++
	return record, nil
}

func (r *Reader) end(t exportTrailer) error {
	r.done = true
	if t.Records != r.count {
		return fmt.Errorf("%w: %d records, the last line says %d", ErrDamaged, r.count, t.Records)
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: %w: lines after the end", r.line, ErrDamaged)
	}
	return io.EOF
}

func (r *Reader) next() ([]byte, error) {
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line+1, err)
		}
		return nil, io.EOF
	}
	r.line++
	return r.lines.Bytes(), nil
}

// Export writes a complete export of every record that list visits to w, and returns their number. Records too large
// for any import are skipped and passed to leftOut.
func Export(w io.Writer, list func(visit func(*tilthv1.Record) error) error, leftOut func(error)) (uint64, error) {
	e, err := NewWriter(w)
	if err != nil {
		return 0, err
	}
	err = list(func(r *tilthv1.Record) error {
		if err := CheckSize(r); err != nil {
			leftOut(err)
			return nil
		}
		return e.Write(r)
	})
	if err != nil {
		return 0, err
	}
	return e.count, e.Close()
}
