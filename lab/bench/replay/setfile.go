package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// A set consists of JSON lines: a header, a line for each candidate, and a trailer with the number of candidates,
// which detects truncated files. Finished sets are compressed with gzip.

// formatName is the first field of a set's header. sampleName is that of a sample's header, which versions without
// support for samples reject.
const (
	formatName = "tilth-replay-set 1"
	sampleName = "tilth-replay-sample 1"
)

// headerLine is the first line.
type headerLine struct {
	Format   string          `json:"format"`
	Task     string          `json:"task"`
	Model    string          `json:"model"`
	Workload string          `json:"workload"`
	Target   json.RawMessage `json:"target"`
	Numerics string          `json:"numerics"`
	Knobs    []knobLine      `json:"knobs,omitempty"`
}

// knobLine lists the values of a knob in the set.
type knobLine struct {
	Name   string  `json:"name"`
	Values []int64 `json:"values"`
}

// pointLine is a candidate or the trailer.
type pointLine struct {
	Origin  string    `json:"origin,omitempty"`
	Samples []float64 `json:"samples_s,omitempty"`
	Error   string    `json:"error,omitempty"`
	Message string    `json:"message,omitempty"`
	// End is the number of candidates. Only the trailer has it.
	End *int `json:"end,omitempty"`
}

func encodeHeader(h *Header) ([]byte, error) {
	line := headerLine{Format: formatName, Task: h.Task, Model: h.Model, Workload: h.Workload.Text(), Target: h.Target.Encode(),
		Numerics: h.Numerics.String()}
	if h.Sampled {
		line.Format = sampleName
		return encode(line)
	}
	s, err := h.Space()
	if err != nil {
		return nil, err
	}
	for _, k := range s.Knobs {
		line.Knobs = append(line.Knobs, knobLine{k.Name, k.Values})
	}
	return encode(line)
}

func encodePoint(p *Point) ([]byte, error) {
	samples := make([]float64, len(p.Samples))
	for k, v := range p.Samples {
		samples[k] = rounded(v)
	}
	return encode(pointLine{Origin: p.Origin, Samples: samples, Error: p.Error, Message: p.Message})
}

func encode(line any) ([]byte, error) {
	data, err := json.Marshal(line)
	return append(data, '\n'), err
}

func parseHeader(data []byte) (*Header, error) {
	var line headerLine
	if err := json.Unmarshal(data, &line); err != nil || line.Format != formatName && line.Format != sampleName {
		return nil, fmt.Errorf("its first line is not the header of a %q or %q", formatName, sampleName)
	}
	h := &Header{Task: line.Task, Model: line.Model, Sampled: line.Format == sampleName, Values: map[string][]int64{}}
	var err error
	if h.Workload, err = expr.Parse(line.Workload); err != nil {
		return nil, fmt.Errorf("its workload: %w", err)
	}
	if h.Target, err = target.Decode(line.Target); err != nil {
		return nil, fmt.Errorf("its target: %w", err)
	}
	if h.Numerics, err = schedule.ParseNumerics(line.Numerics); err != nil {
		return nil, err
	}
	for _, k := range line.Knobs {
		h.Values[k.Name] = k.Values
	}
	return h, nil
}

// parsePoint parses a candidate or the trailer. end is the trailer's number, or -1 for a candidate.
func parsePoint(data []byte) (p Point, end int, err error) {
	var line pointLine
	if err := json.Unmarshal(data, &line); err != nil {
		return Point{}, 0, err
	}
	switch {
	case line.End != nil && (line.Origin != "" || *line.End < 0):
		return Point{}, 0, errors.New("the trailer is broken")
	case line.End != nil:
		return Point{}, *line.End, nil
	case len(line.Samples) == 0 && line.Error == "":
		return Point{}, 0, errors.New("a candidate has neither samples nor an error")
	case slices.ContainsFunc(line.Samples, func(v float64) bool { return v <= 0 }):
		return Point{}, 0, errors.New("a candidate has a sample that is not positive")
	}
	return Point{Origin: line.Origin, Samples: line.Samples, Error: line.Error, Message: line.Message}, -1, nil
}

// Suffix is the suffix of a set's file name.
const Suffix = ".set.gz"

// maxSetBytes bounds the uncompressed size of a set's file.
const maxSetBytes = 64 << 20

// Write writes a set atomically.
func Write(path string, s *Set) error {
	return filesystem.WriteFile(path, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(s.write(z), z.Close())
	})
}

func (s *Set) write(w io.Writer) error {
	line, err := encodeHeader(&s.Header)
	if err != nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	for k := range s.Points {
		if line, err = encodePoint(&s.Points[k]); err != nil {
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
		return nil, err
	}
	defer f.Close()
	s, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
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
	h, err := parseHeader(lines[0])
	if err != nil {
		return nil, err
	}
	s := &Set{Header: *h}
	for k, line := range lines[1:] {
		p, end, err := parsePoint(line)
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
				return nil, err
			}
			slices.Sort(files)
			if len(files) == 0 {
				return nil, fmt.Errorf("%s has no recorded sets: 'go run ./lab record -o %s' makes them", path, path)
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
