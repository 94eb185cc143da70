package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// event is one line of the harness's report; see harness/src/report.h.
type event struct {
	// Event is module, calibration, start, outcome, fault, error or done.
	Event string `json:"event"`
	// Kernels are the ids of the module's kernels.
	Kernels []string `json:"kernels"`
	// Index is the kernel's; -1 stands for the reference.
	Index         int       `json:"index"`
	Kernel        string    `json:"kernel"`
	Status        string    `json:"status"`
	Message       string    `json:"message"`
	RelativeError float64   `json:"relative_error"`
	Samples       []float64 `json:"samples"`
	RunSeconds    float64   `json:"run_seconds"`
	// Seconds is how long the calibration kernel took.
	Seconds float64 `json:"seconds"`
}

const (
	maxEventBytes  = 64 << 10
	maxReportBytes = 16 << 20
)

// errGarbled means that something other than the harness wrote to its report: a candidate found the descriptor.
var errGarbled = errors.New("writes to the harness's report")

// eventReader reads the report of one harness process.
type eventReader struct {
	lines *bufio.Reader
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{bufio.NewReaderSize(io.LimitReader(r, maxReportBytes), maxEventBytes)}
}

// next returns io.EOF at the end, errGarbled for what is no event, and the pipe's errors as they are.
func (r *eventReader) next() (event, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, io.EOF) && len(line) > 0:
		return event{}, errGarbled
	case err != nil:
		return event{}, err
	}
	var e event
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return event{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return e, nil
}
