package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/affinity"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// process is one running harness.
type process struct {
	*sandbox.Process
	report *os.File
	// words is where the harness is told things.
	words  *os.File
	events *eventReader
	ended  atomic.Bool
	stop   func() bool
	// launcher is the command that starts the harness, if any; began says that the harness was heard of.
	launcher []string
	began    bool
}

// wordBytes is the length of the word that begins each line of a report. The harness reads it from its standard input,
// and candidates are not told of it: what they write to the report is no event, unless they search the harness's
// memory for it.
const wordBytes = 64

// secretWord is one that nobody guesses.
func secretWord() string {
	text := ""
	for len(text) < wordBytes {
		text += rand.Text()
	}
	return text[:wordBytes]
}

// start runs the harness in a sandbox, without an environment. It dies with ctx.
func (p Plan) start(ctx context.Context, command sandbox.Command, answers *os.File) (proc *process, err error) {
	err = affinity.Do(p.CPUs, func() error {
		proc, err = start(p.Sandbox, command, answers)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("starting the harness: %w", err)
	}
	proc.watch(ctx)
	return proc, nil
}

// watch has what is under way with the process end with ctx.
func (p *process) watch(ctx context.Context) {
	p.stop = context.AfterFunc(ctx, func() {
		p.ended.Store(true)
		_ = p.report.SetReadDeadline(time.Unix(1, 0)) // fails only when the pipe is closed already
		_ = p.words.SetWriteDeadline(time.Unix(1, 0))
	})
}

// answersDescriptor is the memory in which the harness hands outputs in.
const answersDescriptor = 3

func start(box *sandbox.Sandbox, command sandbox.Command, answers *os.File) (_ *process, err error) {
	secret := secretWord()
	input, words, err := filled(secret)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	defer func() {
		if err != nil {
			_ = words.Close() // nobody reads it
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	command.Descriptors = append([]*os.File{input, write, null, answers}, command.Descriptors...)
	p, err := box.Start(command)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return &process{Process: p, report: read, words: words, events: newEventReader(read, secret), launcher: command.Launcher}, nil
}

// filled is a pipe with a text in it that is shorter than what any pipe holds.
func filled(text string) (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if _, err = io.WriteString(write, text); err != nil {
		return nil, nil, errors.Join(err, read.Close(), write.Close())
	}
	return read, write, nil
}

// next waits for an event. The error is os.ErrDeadlineExceeded when none comes within the limit or ctx has ended.
func (p *process) next(limit time.Duration) (event, error) {
	if err := p.report.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return event{}, fmt.Errorf("reading the harness's report: %w", err)
	}
	if p.ended.Load() { // after the deadline was set: the other order would miss an end in between
		return event{}, os.ErrDeadlineExceeded
	}
	e, err := p.events.next()
	if errors.Is(err, io.EOF) && !p.began && len(p.launcher) > 0 {
		err = fmt.Errorf("%w (it did not begin under %s, which may lack rights that --sandbox off leaves it)", err, strings.Join(p.launcher, " "))
	}
	p.began = p.began || err == nil
	return e, err
}

// How a process ends that was still running when its report ended: by kill, or by itself, as it cannot report any
// longer.
const (
	endedKilled = "ended by killed"
	endedMute   = "exits with status 2"
)

// kill ends the process with all its descendants and says how it had ended before, if it had: "" when it was still
// running or ended well.
func (p *process) kill() string {
	p.stop()
	state, exhausted, err := p.End()
	p.report.Close()
	p.words.Close()
	if exhausted {
		return "uses up its memory"
	}
	if err != nil {
		return err.Error()
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok || state.Success():
		return ""
	case status.Signaled():
		return "ended by " + status.Signal().String()
	default:
		return fmt.Sprintf("exits with status %d", status.ExitStatus())
	}
}
