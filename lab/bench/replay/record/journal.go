package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tilth-dev/tilth/lab/bench/replay"
)

// journal is an unfinished set: its header and the candidates measured so far, one per line. A line truncated
// by a killed process is dropped on opening.
type journal struct {
	file   *os.File
	path   string
	header *replay.Header
	// known holds the points by origin.
	known map[string]replay.Point
}

func openJournal(path string) (*journal, error) {
	j := &journal{path: path, known: map[string]replay.Point{}}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if err := j.read(whole); err != nil {
		return nil, fmt.Errorf("%s: %w: delete it to begin again", path, err)
	}
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, err
	}
	if err := j.file.Truncate(int64(len(whole))); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	if _, err := j.file.Seek(0, 2); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

func (j *journal) read(data []byte) (err error) {
	first := true
	for line := range bytes.Lines(data) {
		if first {
			if j.header, err = replay.ParseHeader(line); err != nil {
				return err
			}
			first = false
			continue
		}
		p, _, err := replay.ParsePoint(line)
		if err != nil {
			return err
		}
		j.known[p.Origin] = p
	}
	return nil
}

// begin writes the header.
func (j *journal) begin(h *replay.Header) error {
	line, err := replay.HeaderLine(h)
	if err != nil {
		return err
	}
	// Parsed again, so that resumed and uninterrupted sets have the same header.
	if j.header, err = replay.ParseHeader(line); err != nil {
		return err
	}
	_, err = j.file.Write(line)
	return err
}

func (j *journal) add(points []replay.Point) error {
	var lines []byte
	for k := range points {
		line, err := replay.PointLine(&points[k])
		if err != nil {
			return err
		}
		lines = append(lines, line...)
	}
	_, err := j.file.Write(lines)
	return err
}

func (j *journal) close() { j.file.Close() }

// remove deletes the file once the set is written.
func (j *journal) remove() error { return os.Remove(j.path) }
