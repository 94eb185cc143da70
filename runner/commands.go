package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// command is a command to a harness; see harness/src/judge.h.
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
