package toolchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/sandbox"
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
)

// run executes a program in dir, in a process group of its own that is killed as a whole at the time limit or when ctx ends. Its walls
// are those of box; nil = limits only.
func (l Limits) run(ctx context.Context, box *sandbox.Sandbox, step, dir, path string, args ...string) error {
	l.Time, l.MemoryBytes = cmp.Or(l.Time, defaultTime), cmp.Or(l.MemoryBytes, defaultMemory)
	limited, cancel := context.WithTimeout(ctx, wallFactor*l.Time)
	defer cancel()
	output, state, err := l.finish(limited, box, dir, path, args)
	switch {
	case err != nil:
		return &Error{Kind: Infra, Step: step, Message: fmt.Sprintf("cannot run %s: %v", path, err), Err: err}
	case state.Success():
		return nil
	case ctx.Err() != nil:
		return &Error{Kind: Infra, Step: step, Message: "abandoned: " + context.Cause(ctx).Error(), Err: ctx.Err()}
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return &Error{Kind: Limit, Step: step, Message: fmt.Sprintf("took longer than %v", wallFactor*l.Time), Err: limited.Err()}
	}
	return l.failure(step, output, state)
}

// finish runs a program to its end and returns what it said.
func (l Limits) finish(ctx context.Context, box *sandbox.Sandbox, dir, path string, args []string) (string, *os.ProcessState, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", nil, err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer read.Close()
	p, err := box.Start(sandbox.Command{
		Program: path, Args: args, Dir: dir, Environment: append(os.Environ(), "LC_ALL=C"), // gcc's messages are told apart by their words
		Descriptors: []*os.File{null, write, write}, Limits: sandbox.Limits{MemoryBytes: int64(l.MemoryBytes), ProcessorTime: l.Time},
	})
	if err = errors.Join(err, write.Close()); err != nil {
		return "", nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		p.KillGroup()
		_ = read.SetReadDeadline(time.Unix(1, 0)) // something that left the group may still have the pipe; fails when it is closed
	})
	defer stop()
	var output head
	_, _ = io.Copy(&output, read) // ends with the last of the group, or at the deadline
	state, _, err := p.Finish()
	return output.String(), state, err
}

// seconds is the limit on processor time, rounded up.
func (l Limits) seconds() uint64 { return uint64((l.Time + time.Second - 1) / time.Second) }

// failure says whose fault it is that a program ended badly.
func (l Limits) failure(step, output string, state *os.ProcessState) error {
	e := &Error{Kind: kindOf(output), Step: step, Message: usefulLine(output), Err: errors.New(state.String())}
	// The kernel enforces the limit by counting ticks, of which a busy machine gives out too many: one of 1 s was seen to end at 0.88 s.
	spent := state.UserTime()+state.SystemTime() >= l.Time/2
	switch killed := isKilled(output, state); {
	case killed && spent:
		e.Kind, e.Message = Limit, fmt.Sprintf("took more than %d s of processor time", l.seconds())
	case killed: // by none of the limits: memory beyond them is refused, not punished
		e.Kind, e.Message = Infra, "killed, as by a machine that is out of memory: run fewer compilers at once (--threads), or give the machine more"
	case e.Kind == Limit:
		e.Message += fmt.Sprintf(" (memory limit %d MiB)", l.MemoryBytes>>20)
	case e.Message == "":
		e.Message = state.String()
	}
	return e
}

// isKilled says whether a program was killed, or tells that something was that it had started.
func isKilled(output string, state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL || slices.ContainsFunc(killedWords, func(words string) bool {
		return strings.Contains(output, words)
	})
}

// killedWords are how gcc and clang tell that a part of them was killed.
var killedWords = []string{"Killed signal terminated program", "unable to execute command: Killed"}

// head keeps the first maxOutput bytes written to it.
type head struct{ data []byte }

// Write never fails: what is over the limit is dropped.
func (h *head) Write(p []byte) (int, error) {
	h.data = append(h.data, p[:min(len(p), maxOutput-len(h.data))]...)
	return len(p), nil
}

// String is what was kept.
func (h *head) String() string { return string(h.data) }
