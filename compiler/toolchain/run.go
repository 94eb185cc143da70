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

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Limits bound one run of the compiler or the linker. Zero values mean the defaults.
type Limits struct {
	// Time is processor time, in whole seconds, so that results do not depend on machine load; 30 s by default. The
	// wall-clock limit is wallFactor times that.
	Time time.Duration
	// MemoryBytes limits the address space; 4 GiB by default. clang itself maps 0.4 GiB.
	MemoryBytes uint64
}

const (
	defaultTime   = 30 * time.Second
	defaultMemory = 4 << 30
	wallFactor    = 10
	// maxOutput is the number of bytes kept of a compiler's output.
	maxOutput = 64 << 10
)

// program is a command to run in a directory.
type program struct {
	dir, path string
	// executable, if not nil, is run instead of the file at path.
	executable *os.File
	args       []string
	// box is the sandbox; nil applies limits only.
	box *sandbox.Sandbox
	// loaded, if not nil, holds the program in memory.
	loaded *servers
}

func (l Limits) withDefaults() Limits {
	return Limits{Time: cmp.Or(l.Time, defaultTime), MemoryBytes: cmp.Or(l.MemoryBytes, defaultMemory)}
}

// run executes a program in a process group that is killed as a whole at the time limit or when ctx ends.
func (l Limits) run(ctx context.Context, step string, p program) error {
	l = l.withDefaults()
	limited, cancel := context.WithTimeout(ctx, wallFactor*l.Time)
	defer cancel()
	output, exit, err := l.finish(limited, p)
	switch {
	case err != nil:
		return &Error{Kind: Infra, Step: step, Message: fmt.Sprintf("cannot run %s: %v", p.path, err), Err: err}
	case exit.Status == 0:
		return nil
	case ctx.Err() != nil:
		return &Error{Kind: Infra, Step: step, Message: "abandoned: " + context.Cause(ctx).Error(), Err: ctx.Err()}
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return &Error{Kind: Limit, Step: step, Message: fmt.Sprintf("took longer than %v", wallFactor*l.Time), Err: limited.Err()}
	}
	return l.failure(step, output, exit)
}

// finish runs a program to completion and returns its output.
func (l Limits) finish(ctx context.Context, p program) (string, ForkExit, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", ForkExit{}, err
	}
	defer read.Close()
	r, err := l.start(p, write)
	if err = errors.Join(err, write.Close()); err != nil {
		return "", ForkExit{}, err
	}
	stop := context.AfterFunc(ctx, func() {
		r.kill()
		_ = read.SetReadDeadline(time.Unix(1, 0)) // the pipe may be held elsewhere
	})
	defer stop()
	var output head
	_, _ = io.Copy(&output, read) // ends with the last process of the group, or at the deadline
	exit, err := r.wait()
	if errors.Is(err, errServerGone) {
		if ctx.Err() == nil {
			p.loaded = nil
			return l.finish(ctx, p)
		}
		exit, err = ForkExit{Status: syscall.WaitStatus(syscall.SIGKILL)}, nil
	}
	return string(output.data), exit, err
}

// running is a started program.
type running struct {
	kill func()
	wait func() (ForkExit, error)
}

// start starts a program with its output redirected to a file, in a fork server if available.
func (l Limits) start(p program, output *os.File) (running, error) {
	limits := sandbox.Limits{MemoryBytes: int64(l.MemoryBytes), ProcessorTime: l.Time}
	if server := p.loaded.take(); server != nil {
		if r, ok := p.begin(server, output, limits); ok {
			return r, nil
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return running{}, err
	}
	defer null.Close()
	process, err := p.box.Start(sandbox.Command{
		Program: p.path, Executable: p.executable, Args: p.args, Dir: p.dir, Environment: environment(), Descriptors: []*os.File{null, output, output}, Limits: limits,
	})
	if err != nil {
		return running{}, err
	}
	return running{kill: process.KillGroup, wait: func() (ForkExit, error) {
		state, _, err := process.Finish()
		if err != nil {
			return ForkExit{}, err
		}
		return ForkExit{Status: state.Sys().(syscall.WaitStatus), Used: state.UserTime() + state.SystemTime()}, nil
	}}, nil
}

// errServerGone means that a server was killed during its run, by cancellation or from outside.
var errServerGone = errors.New("the fork server of the compiler has exited")

// begin starts a run on a server; ok is false if the server was killed or the directory is gone.
func (p program) begin(server *ForkServer, output *os.File, limits sandbox.Limits) (r running, ok bool) {
	dir, err := os.Open(p.dir)
	if err != nil {
		p.loaded.put(server)
		return running{}, false
	}
	defer dir.Close()
	if err := server.Request(dir, append([]string{p.path}, p.args...), output, limits); err != nil {
		server.Close()
		return running{}, false
	}
	return running{kill: server.Kill, wait: func() (ForkExit, error) {
		exit, err := server.Wait()
		if err != nil {
			server.Close()
			return ForkExit{}, errServerGone
		}
		p.loaded.put(server)
		return exit, nil
	}}, true
}

// environment returns the environment of compilers and linkers. gcc's messages are matched in English.
func environment() []string { return append(os.Environ(), "LC_ALL=C") }

// failure classifies the failure of a program.
func (l Limits) failure(step, output string, exit ForkExit) error {
	e := &Error{Kind: kindOf(output), Step: step, Message: usefulLine(output), Err: errors.New(ending(exit.Status))}
	// The kernel enforces the limit by counting ticks, and overcounts on a busy machine: a limit of 1 s was seen to
	// expire at 0.88 s.
	spent := exit.Used >= l.Time/2
	switch killed := isKilled(output, exit.Status); {
	case killed && spent:
		e.Kind, e.Message = Limit, fmt.Sprintf("took more than %d s of processor time", (l.Time+time.Second-1)/time.Second)
	case killed: // not by a limit: memory beyond it is refused, without a signal
		e.Kind, e.Message = Infra, "killed, as by a machine that is out of memory: run fewer compilers at once (--threads), or give the machine more"
	case e.Kind == Limit:
		e.Message += fmt.Sprintf(" (memory limit %d MiB)", l.MemoryBytes>>20)
	case e.Message == "":
		e.Message = ending(exit.Status)
	}
	return e
}

func ending(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// isKilled reports whether a program, or one that it started, was killed.
func isKilled(output string, status syscall.WaitStatus) bool {
	return status.Signaled() && status.Signal() == syscall.SIGKILL || slices.ContainsFunc(killedWords, func(words string) bool {
		return strings.Contains(output, words)
	})
}

// killedWords are the messages of gcc and clang for a killed subprocess.
var killedWords = []string{"Killed signal terminated program", "unable to execute command: Killed"}

// head keeps the first maxOutput bytes written to it.
type head struct{ data []byte }

// Write never fails: it drops bytes over the limit.
func (h *head) Write(p []byte) (int, error) {
	h.data = append(h.data, p[:min(len(p), maxOutput-len(h.data))]...)
	return len(p), nil
}
