package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tilth-dev/tilth/runner/answer"
)

// event is one line of the harness's report; see harness/src/report.h.
type event struct {
	// Event is ready, workload, load, module, calibration, start, ran, sustain, sustained, outcome, fault, timeout,
	// lost, too-large, error or done.
	Event string `json:"event"`
	// Args are the workload's. Harnesses of older builders tell one Tolerance for all of them.
	Args      []answer.Arg `json:"args"`
	Tolerance float64      `json:"tolerance"`
	// Kernels are the ids of the kernels loaded, Modules the numbers of the objects that they are in.
	Kernels []string `json:"kernels"`
	Modules []int    `json:"modules"`
	// Index is the kernel's; -1 stands for the reference. Of load it is the object's.
	Index      int       `json:"index"`
	Kernel     string    `json:"kernel"`
	Status     string    `json:"status"`
	Message    string    `json:"message"`
	Samples    []float64 `json:"samples"`
	RunSeconds float64   `json:"run_seconds"`
	// Growth is how many times the tolerance the kernel's algorithm needs, as it says.
	Growth float64 `json:"growth"`
	// Seconds is how long the calibration kernel took.
	Seconds float64 `json:"seconds"`
	// PatienceSeconds is what a calibration leaves of the patience; below zero when more was spent.
	PatienceSeconds float64 `json:"patience_seconds"`
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
	limit *io.LimitedReader
	// word begins each line that the harness wrote.
	word []byte
}

func newEventReader(r io.Reader, word string) *eventReader {
	limit := &io.LimitedReader{R: r, N: maxReportBytes}
	return &eventReader{bufio.NewReaderSize(limit, maxEventBytes), limit, []byte(word)}
}

// refill has the process report as much once more.
func (r *eventReader) refill() { r.limit.N = maxReportBytes }

// next returns io.EOF at the end, errGarbled for what is no event, and the pipe's errors as they are.
func (r *eventReader) next() (event, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, io.EOF) && len(line) > 0:
		return event{}, errGarbled
	case err != nil:
		return event{}, err
	}
	line, genuine := bytes.CutPrefix(line, r.word)
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
