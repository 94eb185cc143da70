package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound one run of the compiler or the linker. Zero values mean the defaults.
type Limits struct {
	// Time is processor time, in whole seconds, so that a busy machine condemns nobody; 30 s by default. Wall-clock time
	// may be wallFactor times that.
	Time time.Duration
	// MemoryBytes bounds the address space; 4 GiB by default. clang itself maps 0.4 GiB.
	MemoryBytes uint64
}

const (
	defaultTime   = 30 * time.Second
	defaultMemory = 4 << 30
	wallFactor    = 10
	// maxOutput is how much of a compiler's output is kept.
	maxOutput = 64 << 10
	// killGrace is how long a killed compiler's pipes may stay open before they are abandoned.
	killGrace = time.Second
)

// run executes a program in dir, in a process group of its own that is killed as a whole at the time limit or when ctx ends.
func (l Limits) run(ctx context.Context, step, dir, path string, args ...string) error {
	if l.Time == 0 {
		l.Time = defaultTime
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = defaultMemory
	}
	limited, cancel := context.WithTimeout(ctx, wallFactor*l.Time)
	defer cancel()
	var output head
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C") // gcc's messages are told apart by their words
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	if err := cmd.Start(); err != nil {
		return &Error{Kind: Infra, Step: step, Message: fmt.Sprintf("cannot run %s: %v", path, err), Err: err}
	}
	// A process that already ended has no limits to set; Wait tells how it ended.
	setLimit(cmd.Process.Pid, unix.RLIMIT_AS, l.MemoryBytes)
	setLimit(cmd.Process.Pid, unix.RLIMIT_CPU, l.seconds())
	err := cmd.Wait()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &Error{Kind: Infra, Step: step, Message: "abandoned: " + context.Cause(ctx).Error(), Err: ctx.Err()}
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return &Error{Kind: Limit, Step: step, Message: fmt.Sprintf("took longer than %v", wallFactor*l.Time), Err: limited.Err()}
	}
	return l.failure(step, output.String(), err)
}

func setLimit(pid, resource int, value uint64) {
	_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
}

// seconds is the limit on processor time, rounded up.
func (l Limits) seconds() uint64 { return uint64((l.Time + time.Second - 1) / time.Second) }

func (l Limits) failure(step, output string, err error) error {
	e := &Error{Kind: kindOf(output), Step: step, Message: usefulLine(output), Err: err}
	var exit *exec.ExitError
	status, ok := syscall.WaitStatus(0), errors.As(err, &exit)
	if ok {
		status, ok = exit.Sys().(syscall.WaitStatus)
	}
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		used := exit.UserTime() + exit.SystemTime()
		e.Kind, e.Message = Limit, "killed; the machine is probably out of memory"
		if used >= l.Time*9/10 {
			e.Message = fmt.Sprintf("took more than %d s of processor time", l.seconds())
		}
	case e.Kind == Limit:
		e.Message += fmt.Sprintf(" (memory limit %d MiB)", l.MemoryBytes>>20)
	case e.Message == "":
		e.Message = err.Error()
	}
	return e
}

// head keeps the first maxOutput bytes written to it.
type head struct{ data []byte }

// Write never fails: what is over the limit is dropped.
func (h *head) Write(p []byte) (int, error) {
	h.data = append(h.data, p[:min(len(p), maxOutput-len(h.data))]...)
	return len(p), nil
}

// String is what was kept.
func (h *head) String() string { return string(h.data) }
