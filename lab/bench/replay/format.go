package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
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

// HeaderLine encodes a header as a line of a set's file.
func HeaderLine(h *Header) ([]byte, error) {
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

// PointLine encodes a measured candidate as a line of a set's file.
func PointLine(p *Point) ([]byte, error) {
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

// ParseHeader parses a header line.
func ParseHeader(data []byte) (*Header, error) {
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

// ParsePoint parses a candidate or the trailer. end is the trailer's number, or -1 for a candidate.
func ParsePoint(data []byte) (p Point, end int, err error) {
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
