package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tilth-dev/tilth/runner/answer"
)

// word is what a harness is told; see harness/src/judge.h.
type word struct {
	op            byte
	seed, slot, n uint64
}

const (
	goOn     = 'o'
	isWrong  = 'w'
	fillSets = 'f'
	runSets  = 'r'
	loadOne  = 'l'
	enough   = 'e'
	// arguments are followed by n bytes: what a process of a pool is to do, as a command line.
	arguments = 'a'
)

// hearing is how long a harness may leave words unheard, of which a pipe holds thousands: it asks for one at a time.
const hearing = time.Second

// say tells the harness something. One that has ended hears nothing; its report tells.
func (p *process) say(w word) error {
	if err := p.words.SetWriteDeadline(time.Now().Add(hearing)); err != nil {
		return fmt.Errorf("the harness: %w", err)
	}
	text := binary.NativeEndian.AppendUint64(nil, uint64(w.op))
	for _, v := range []uint64{w.seed, w.slot, w.n} {
		text = binary.NativeEndian.AppendUint64(text, v)
	}
	_, err := p.words.Write(text)
	switch {
	case err != nil && p.ended.Load():
		return fmt.Errorf("the harness: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errGarbled
	}
	return nil
}

// workload reads what a harness says of the workload before it asks for anything.
func (p *process) workload(limit time.Duration) (*answer.Workload, error) {
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
			return &answer.Workload{Args: e.Args}, nil
		case e.Event == "error", e.Event == "fault":
			return nil, &infraError{e.Message}
		case e.Event == "lost":
			return nil, e.lost()
		default:
			return nil, errGarbled
		}
	}
}

// run has a harness run on sets of data, and waits until it has.
func (p *process) run(w word, limit time.Duration) error {
	if err := p.say(w); err != nil {
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
