package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one running harness.
type process struct {
	cmd    *exec.Cmd
	report *os.File
	events *eventReader
	ended  atomic.Bool
	stop   func() bool
}

// startProcess runs the harness in a process group of its own, without an environment, in the scratch folder. It dies with ctx.
func startProcess(ctx context.Context, scratch string, command []string) (*process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the harness: %w", err)
	}
	defer write.Close()
	cmd, err := start(ctx, scratch, command, write)
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("starting the harness: %w", err)
	}
	p := &process{cmd: cmd, report: read, events: newEventReader(read)}
	p.stop = context.AfterFunc(ctx, func() {
		p.ended.Store(true)
		_ = read.SetReadDeadline(time.Unix(1, 0)) // fails only when the pipe is closed already
	})
	return p, nil
}

const (
	busyAttempts = 20
	busyWait     = 10 * time.Millisecond
)

// start begins the program. A file that was just written is busy as long as some other process, forked at that moment and
// about to execute something else, still has it open; this passes.
func start(ctx context.Context, scratch string, command []string, report *os.File) (*exec.Cmd, error) {
	for attempt := 1; ; attempt++ {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout = scratch, []string{}, report
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err := cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || attempt == busyAttempts {
			return cmd, err
		}
		select {
		case <-time.After(busyWait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// next waits for an event. The error is os.ErrDeadlineExceeded when none comes within the limit or ctx has ended.
func (p *process) next(limit time.Duration) (event, error) {
	if err := p.report.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return event{}, fmt.Errorf("reading the harness's report: %w", err)
	}
	if p.ended.Load() { // after the deadline was set: the other order would miss an end in between
		return event{}, os.ErrDeadlineExceeded
	}
	return p.events.next()
}

// kill ends the process with all its descendants and says how it had ended before, if it had: "" when it was still
// running or ended well.
func (p *process) kill() string {
	p.stop()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // an error means that nothing is left
	err := p.cmd.Wait()
	p.report.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return err.Error()
	case status.Signaled():
		return "ended by " + status.Signal().String()
	default:
		return fmt.Sprintf("exits with status %d", status.ExitStatus())
	}
}
