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
	// Event is ready, workload, load, module, calibration, start, ran, sustain, sustained, outcome, fault,
	// timeout, lost, too-large, error or done.
	Event string `json:"event"`
	// Args describes the workload's arguments. Harnesses of older builders report one Tolerance for all of
	// them.
	Args      []Arg   `json:"args"`
	Tolerance float64 `json:"tolerance"`
	// Kernels lists the ids of the loaded kernels, and Modules the indexes of their objects.
	Kernels []string `json:"kernels"`
	Modules []int    `json:"modules"`
	// Index is the index of the kernel, or -1 for the reference. For load it is the index of the object.
	Index      int       `json:"index"`
	Kernel     string    `json:"kernel"`
	Status     string    `json:"status"`
	Message    string    `json:"message"`
	Samples    []float64 `json:"samples"`
	RunSeconds float64   `json:"run_seconds"`
	// Growth is the multiple of the tolerance that the kernel's algorithm declares.
	Growth float64 `json:"growth"`
	// Seconds is the duration of the calibration kernel.
	Seconds float64 `json:"seconds"`
	// PatienceSeconds is the patience left after a calibration; negative if it was exceeded.
	PatienceSeconds float64 `json:"patience_seconds"`
}

const (
	maxEventBytes  = 64 << 10
	maxReportBytes = 16 << 20
)

// errGarbled means that a candidate found the descriptor of the report and wrote to it.
var errGarbled = errors.New("writes to the harness's report")

// eventReader reads the report of one harness process.
type eventReader struct {
	lines *bufio.Reader
	limit *io.LimitedReader
	// prefix is the prefix of each line that the harness writes.
	prefix []byte
}

func newEventReader(r io.Reader, word string) *eventReader {
	limit := &io.LimitedReader{R: r, N: maxReportBytes}
	return &eventReader{bufio.NewReaderSize(limit, maxEventBytes), limit, []byte(word)}
}

// refill restores the size limit of the report.
func (r *eventReader) refill() { r.limit.N = maxReportBytes }

// next returns the next event, io.EOF at the end, errGarbled for anything else, and errors of the pipe
// unchanged.
func (r *eventReader) next() (event, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, io.EOF) && len(line) > 0:
		return event{}, errGarbled
	case err != nil:
		return event{}, err
	}
	line, genuine := bytes.CutPrefix(line, r.prefix)
	if !genuine {
		return event{}, errGarbled
	}
	var e event
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return event{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return e, nil
}
