package execute

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Failure is the packages' own fault, or that of their inputs: it would come again.
type Failure struct{ message string }

// Error is the message.
func (f *Failure) Error() string { return f.message }

// Executor runs packages in processes of their own.
type Executor struct {
	// Args start a process that calls Serve, of this very program, whatever has become of its file: its name and arguments.
	Args   []string
	Logger *slog.Logger
}

// mostAnswerBytes bounds what is read of a process.
const mostAnswerBytes = 64 << 20

// Run runs packages in a process and returns what they came to. The error is a Failure, the cause with which ctx ended, or the machine's
// fault. The request's paths are this process's.
func (e *Executor) Run(ctx context.Context, request Request, limits Limits) (*Result, error) {
	limits = limits.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, &Failure{fmt.Sprintf("takes longer than %v: allow more time, or ask for fewer executions", limits.Time)})
	defer cancel()
	dir, err := e.folder()
	if err != nil {
		return nil, fmt.Errorf("run packages: %w", err)
	}
	defer os.RemoveAll(dir)
	passed, inside, err := request.pass()
	defer func() {
		for _, f := range passed {
			f.Close()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("run packages: %w", err)
	}
	inside.Limits = limits
	text, err := json.Marshal(inside)
	if err != nil {
		return nil, fmt.Errorf("run packages: %w", err)
	}
	p := &process{dir: dir, passed: passed, request: text}
	err = p.run(ctx, e)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return p.result(request, err)
}

// folder is one that the process may write to, which nobody can but through folders open to all.
func (e *Executor) folder() (string, error) {
	if os.Geteuid() != 0 {
		return os.MkdirTemp("", "tilth-run-")
	}
	parent := os.TempDir()
	if !open(parent) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "tilth-run-")
	if err != nil {
		return "", err
	}
	return dir, os.Chown(dir, nobody, nobody)
}

// open says whether everybody may pass through a folder and those that it is in.
func open(dir string) bool {
	for {
		if info, err := os.Stat(dir); err != nil || info.Mode()&1 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// pass opens the request's files for the process, and returns the request as it reads inside.
func (r Request) pass() (files []*os.File, inside Request, err error) {
	inside = r
	inside.Packages = nil
	pass := func(path string, flag int) string {
		f, failed := os.OpenFile(path, flag, 0)
		if failed != nil {
			err = errors.Join(err, failed)
			return ""
		}
		files = append(files, f)
		return fmt.Sprintf("/proc/self/fd/%d", firstPassed+len(files)-1)
	}
	for _, p := range r.Packages {
		inside.Packages = append(inside.Packages, Package{Path: pass(p.Path, os.O_RDONLY), Name: p.Name})
	}
	if r.Inputs != "" {
		inside.Inputs = pass(r.Inputs, os.O_RDONLY)
	}
	if r.Outputs != "" {
		inside.Outputs = pass(r.Outputs, os.O_RDWR)
	}
	return files, inside, err
}

// firstPassed is the number of the first descriptor that a process is passed.
const firstPassed = 3

// process is one that runs packages.
type process struct {
	dir            string
	passed         []*os.File
	request        []byte
	stdout, stderr bytes.Buffer
	state          *os.ProcessState
}

// run starts the process as far from others as this machine lets it, and waits for its end.
func (p *process) run(ctx context.Context, e *Executor) error {
	runtime.LockOSThread() // the process is told to end with the thread that started it
	defer runtime.UnlockOSThread()
	cmd := p.command(e, apart())
	err := cmd.Start()
	if isolated := cmd.SysProcAttr.Cloneflags != 0 || cmd.SysProcAttr.Credential != nil; err != nil && isolated {
		e.Logger.Warn("packages run with the runner's own rights: this machine gives a process none of its own", "error", err)
		cmd = p.command(e, &syscall.SysProcAttr{})
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("run packages: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	p.state = cmd.ProcessState
	return err
}

func (p *process) command(e *Executor, attributes *syscall.SysProcAttr) *exec.Cmd {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: e.Args}
	cmd.Dir, cmd.Env = p.dir, []string{"TMPDIR=" + p.dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p.request), &limited{to: &p.stdout, left: mostAnswerBytes}, &limited{to: &p.stderr, left: 4 << 10}
	cmd.ExtraFiles = p.passed
	attributes.Setpgid, attributes.Pdeathsig = true, syscall.SIGKILL
	cmd.SysProcAttr = attributes
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes
	return cmd
}

// limited keeps the beginning of what is written and drops the rest.
type limited struct {
	to   io.Writer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if _, err := l.to.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// result reads the answer of a process that has ended.
func (p *process) result(request Request, ended error) (*Result, error) {
	if p.state == nil {
		return nil, ended
	}
	var a answer
	if err := json.Unmarshal(p.stdout.Bytes(), &a); err == nil && ended == nil {
		switch {
		case a.Error != "":
			return nil, &Failure{a.Error}
		case a.Result != nil && len(a.Result.Packages) == len(request.Packages):
			return a.Result, nil
		}
	}
	status, _ := p.state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return nil, &Failure{fmt.Sprintf("crashes: ended by %s", strings.ToLower(status.Signal().String()))}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(p.stderr.String()), "\n")
	return nil, &Failure{fmt.Sprintf("crashes: exits with status %d %s", status.ExitStatus(), line)}
}
