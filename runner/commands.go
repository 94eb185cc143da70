package runner

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// command is a command to a harness; see cruntime/harness/judge.h.
type command struct {
	op            byte
	seed, slot, n uint64
}

const (
	cmdContinue = 'o'
	cmdWrong    = 'w'
	cmdFillSets = 'f'
	cmdRunSets  = 'r'
	cmdLoad     = 'l'
	cmdEnough   = 'e'
	// cmdArguments is followed by n bytes: the command line for a pooled process.
	cmdArguments = 'a'
)

// writeTimeout is how long a harness may leave commands unread. A pipe holds thousands, and the harness requests
// one at a time.
const writeTimeout = time.Second

// send writes a command to the harness. It is a no-op after the harness has exited; its report explains why.
func (p *process) send(w command) error {
	if err := p.commands.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("the harness: %w", err)
	}
	text := binary.NativeEndian.AppendUint64(nil, uint64(w.op))
	for _, v := range []uint64{w.seed, w.slot, w.n} {
		text = binary.NativeEndian.AppendUint64(text, v)
	}
	_, err := p.commands.Write(text)
	switch {
	case err != nil && p.ended.Load():
		return fmt.Errorf("the harness: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errGarbled
	}
	return nil
}

// workload reads the harness's description of the workload, which precedes all requests.
func (p *process) workload(limit time.Duration) (*Workload, error) {
	for {
		e, err := p.next(limit)
		switch {
		case err != nil:
			return nil, err
		case e.Event == "start" && e.Index == -1:
		case e.Event == "workload":
			for k := range e.Args {
				e.Args[k].Tolerance = max(e.Args[k].Tolerance, e.Tolerance)
			}
			return &Workload{Args: e.Args}, nil
		case e.Event == "error", e.Event == "fault":
			return nil, &infraError{e.Message}
		case e.Event == "lost":
			return nil, e.lost()
		default:
			return nil, errGarbled
		}
	}
}

// run makes a harness run on sets of data and waits for it.
func (p *process) run(w command, limit time.Duration) error {
	if err := p.send(w); err != nil {
		return err
	}
	e, err := p.next(limit)
	switch {
	case err != nil:
		return err
	case e.Event == "done":
		return nil
	case e.Event == "error", e.Event == "fault":
		return &infraError{e.Message}
	case e.Event == "lost":
		return e.lost()
	case e.Event == "timeout":
		return &overdueError{e.Message}
	}
	return errGarbled
}

// event is one line of the harness's report; see cruntime/harness/report.h.
type event struct {
	// Event is ready, workload, load, module, calibration, start, ran, sustain, sustained, outcome, fault,
	// timeout, lost, too-large, error or done.
	Event string `json:"event"`
	// Args describes the workload's arguments. Harnesses of older builders report one Tolerance for all of them.
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

// next returns the next event, io.EOF at the end, errGarbled for anything else, and errors of the pipe unchanged.
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
