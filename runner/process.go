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

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// process is one running harness.
type process struct {
	*sandbox.Process
	report *os.File
	// commands is the pipe for commands to the harness.
	commands *os.File
	events   *eventReader
	ended    atomic.Bool
	stop     func() bool
	// launcher is the command that starts the harness, if any. began is set once the harness has reported.
	launcher []string
	began    bool
}

// prefixBytes is the length of the secret prefix of each line of a report. The harness reads it from standard
// input, and candidates do not know it. Their own writes to the report are no valid events, unless they
// search the harness's memory.
const prefixBytes = 64

// secretPrefix returns an unpredictable word.
func secretPrefix() string {
	text := ""
	for len(text) < prefixBytes {
		text += rand.Text()
	}
	return text[:prefixBytes]
}

// start runs the harness in a sandbox with an empty environment. It is killed when ctx ends.
func (p Plan) start(ctx context.Context, command sandbox.Command, answers *os.File) (proc *process, err error) {
	err = target.RunOn(p.CPUs, func() error {
		proc, err = start(p.Sandbox, command, answers)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("starting the harness: %w", err)
	}
	proc.watch(ctx)
	return proc, nil
}

// watch aborts operations on the process when ctx ends.
func (p *process) watch(ctx context.Context) {
	p.stop = context.AfterFunc(ctx, func() {
		p.ended.Store(true)
		_ = p.report.SetReadDeadline(time.Unix(1, 0)) // fails only if the pipe is already closed
		_ = p.commands.SetWriteDeadline(time.Unix(1, 0))
	})
}

// answersDescriptor is the descriptor of the shared memory for outputs.
const answersDescriptor = 3

func start(box *sandbox.Sandbox, command sandbox.Command, answers *os.File) (_ *process, err error) {
	secret := secretPrefix()
	input, words, err := filled(secret)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	defer func() {
		if err != nil {
			_ = words.Close() // unread
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
	return &process{Process: p, report: read, commands: words, events: newEventReader(read, secret), launcher: command.Launcher}, nil
}

// filled returns a pipe that contains a text, which must fit into a pipe's buffer.
func filled(text string) (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if _, err = io.WriteString(write, text); err != nil {
		return nil, nil, errors.Join(err, read.Close(), write.Close())
	}
	return read, write, nil
}

// next waits for an event. It returns os.ErrDeadlineExceeded if none arrives within the limit or ctx has ended.
func (p *process) next(limit time.Duration) (event, error) {
	if err := p.report.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return event{}, fmt.Errorf("reading the harness's report: %w", err)
	}
	if p.ended.Load() { // checked after setting the deadline, so that no end is missed
		return event{}, os.ErrDeadlineExceeded
	}
	e, err := p.events.next()
	if errors.Is(err, io.EOF) && !p.began && len(p.launcher) > 0 {
		err = fmt.Errorf("%w (it did not begin under %s, which may lack rights that --sandbox off leaves it)", err, strings.Join(p.launcher, " "))
	}
	p.began = p.began || err == nil
	return e, err
}

// How a process ended that was still running when its report ended: killed, or by itself, unable to report.
const (
	endedKilled = "ended by killed"
	endedMute   = "exits with status 2"
)

// kill ends the process with all its descendants. It returns how the process had failed before, or "" if it
// was running or had exited successfully.
func (p *process) kill() string {
	p.stop()
	state, exhausted, err := p.End()
	p.report.Close()
	p.commands.Close()
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
