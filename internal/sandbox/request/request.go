package request

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Failure is the request's own fault: it would come again.
type Failure struct{ message string }

// Failed is a failure.
func Failed(format string, args ...any) *Failure { return &Failure{fmt.Sprintf(format, args...)} }

// Error is the message.
func (f *Failure) Error() string { return f.message }

// Server starts processes that serve a request each.
type Server struct {
	// Args start such a process, of this very program, whatever has become of its file: its name and arguments.
	Args []string
	// Sandbox is what processes run in; nil = limits only.
	Sandbox *sandbox.Sandbox
	// Scratch is the absolute path of a folder for temporary files.
	Scratch string
}

// Limits bound a process and its answer.
type Limits struct {
	// Time is on the wall's clock, Processors how many processors the process may keep busy meanwhile.
	Time       time.Duration
	Processors int
	// Remedy is what to do about a request that takes longer.
	Remedy string
	// MemoryBytes bounds the memory; 0 = no bound. FileBytes bounds each file that is written.
	MemoryBytes, FileBytes int64
	// AnswerBytes bounds the answer.
	AnswerBytes int64
}

const (
	// mostComplaintBytes bounds what a process may say besides its answer.
	mostComplaintBytes = 1 << 20
	mostOpenFiles      = 256
	// SpareThreads that a process may have beside one a processor are those of the runtime, and of agents beside this
	// one, whose processes may belong to the same user.
	SpareThreads = 512
	// ReservedBytes of the address space are not counted: they are more than Go's runtime reserves, which is 1.6 GiB.
	ReservedBytes = 2 << 30
	// lingering is how long pipes may stay open after a process: something may have them that it started, where no
	// sandbox forbids that.
	lingering = time.Second
)

// Process is one that serves a request. Close it.
type Process struct {
	// opened are all files of this process for it, temporary those of them to be removed. failed is why one could not
	// be opened.
	opened    []*os.File
	temporary []string
	failed    error
	scratch   string
	// inside are its descriptors after the first three.
	inside []*os.File

	limits          Limits
	state           *os.ProcessState
	exhausted       bool
	said, complains []byte
}

// Open prepares a process.
func (s *Server) Open() *Process { return &Process{scratch: s.Scratch} }

// own takes over a file that was opened.
func (p *Process) own(f *os.File, err error) *os.File {
	p.failed = cmp.Or(p.failed, err)
	if f != nil {
		p.opened = append(p.opened, f)
	}
	return f
}

func (p *Process) ownTemporary(pattern string) *os.File {
	f := p.own(os.CreateTemp(p.scratch, pattern))
	if f != nil {
		p.temporary = append(p.temporary, f.Name())
	}
	return f
}

func (p *Process) ownPipe() (read, write *os.File) {
	read, write, err := os.Pipe()
	return p.own(read, err), p.own(write, err)
}

// Give lets the process find a file open, as its next descriptor from 3 on: it opens none for writing itself.
func (p *Process) Give(f *os.File, err error) {
	if f = p.own(f, err); f != nil {
		p.inside = append(p.inside, f)
	}
}

// GiveTemporary gives it an empty file to write to, which goes with the process, and returns its path.
func (p *Process) GiveTemporary(pattern string) (path string) {
	f := p.ownTemporary(pattern)
	if f == nil {
		return ""
	}
	p.inside = append(p.inside, f)
	return f.Name()
}

// Close gives up what was opened.
func (p *Process) Close() {
	for _, f := range p.opened {
		_ = f.Close() // some are closed already; nothing was written by this process but the order
	}
	for _, path := range p.temporary {
		_ = os.Remove(path) // the folder is emptied when an agent starts
	}
}

// Run has the process serve an order, and returns its answer, which may be forged. files are those that it reads by
// their names. The error is a Failure, the cause with which ctx ended, or the machine's fault.
func (s *Server) Run(ctx context.Context, p *Process, order []byte, files []string, l Limits) (answer []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Time, Failed("takes longer than %v: %s", l.Time, l.Remedy))
	defer cancel()
	p.limits = l
	err = s.serve(ctx, p, order, files)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case p.exhausted:
		return nil, Failed("crashes: uses up its memory")
	case int64(len(p.said)) > l.AnswerBytes || len(p.complains) > mostComplaintBytes:
		return nil, Failed("crashes: floods its output")
	case !p.state.Success():
		return nil, p.Crash()
	}
	return p.said, nil
}

// serve starts the process and waits for its end, which comes with ctx's at the latest.
func (s *Server) serve(ctx context.Context, p *Process, order []byte, files []string) error {
	executable, input := p.own(os.Open("/proc/self/exe")), p.ownTemporary("order-*.json")
	answer, said := p.ownPipe()
	complaint, complained := p.ownPipe()
	if p.failed != nil {
		return p.failed
	}
	for _, path := range files {
		if err := sandbox.Share(path, false); err != nil {
			return err
		}
	}
	if _, err := input.WriteAt(order, 0); err != nil { // the process reads it from where the file is at
		return err
	}
	inside := append([]*os.File{input, said, complained}, p.inside...)
	began, err := s.Sandbox.Start(sandbox.Command{
		Executable: executable, Program: s.Args[0], Args: s.Args[1:], Dir: "/", Files: files, Events: true, Descriptors: inside,
		Limits: sandbox.Limits{
			MemoryBytes: p.limits.MemoryBytes, ReservedBytes: ReservedBytes,
			ProcessorTime: time.Duration(p.limits.Processors) * p.limits.Time, Processes: p.limits.Processors + SpareThreads,
			OpenFiles: mostOpenFiles, FileBytes: p.limits.FileBytes,
		},
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, began.KillGroup)
	defer stop()
	for _, f := range inside {
		_ = f.Close() // it has its own
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.said = gather(began, answer, p.limits.AnswerBytes) })
	reading.Go(func() { p.complains = gather(began, complaint, mostComplaintBytes) })
	p.state, p.exhausted, err = began.Finish()
	end := time.Now().Add(lingering)
	err = errors.Join(err, answer.SetReadDeadline(end), complaint.SetReadDeadline(end))
	reading.Wait()
	return err
}

// gather reads what a process says. One that says more than most is ended.
func gather(p *sandbox.Process, from *os.File, most int64) []byte {
	text, _ := io.ReadAll(io.LimitReader(from, most+1)) // to its end or to the deadline
	if int64(len(text)) > most {
		p.KillGroup()
	}
	return text
}

// Crash is the failure of a process that has ended without an answer to its order: how it ended, and what it
// complained of, whose first line may say anything.
func (p *Process) Crash() *Failure {
	status, _ := p.state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return Failed("crashes: ended by %s", strings.ToLower(status.Signal().String()))
	}
	return Failed("crashes: exits with status %d %s", status.ExitStatus(), withoutWarnings(p.complains))
}

// withoutWarnings is a complaint from the first line on that is no warning of a sanitizer, which programs built with
// one may begin with in a sandbox.
func withoutWarnings(complaint []byte) []byte {
	for bytes.HasPrefix(complaint, []byte("==")) {
		_, complaint, _ = bytes.Cut(complaint, []byte("\n"))
	}
	return complaint
}
