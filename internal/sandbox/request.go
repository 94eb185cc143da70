package sandbox

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
)

// Failure is a failure caused by the request itself. A retry would fail again.
type Failure struct{ message string }

// Failed returns a failure.
func Failed(format string, args ...any) *Failure { return &Failure{fmt.Sprintf(format, args...)} }

func (f *Failure) Error() string { return f.message }

// Server runs this program again to serve each request in a separate, sandboxed process: the order goes to standard
// input, and the answer comes from standard output. Whatever the request does to its process affects that request
// only.
type Server struct {
	// Args starts such a process of this very program, even if its file was replaced: name and arguments.
	Args []string
	// Sandbox isolates the processes; nil means limits only.
	Sandbox *Sandbox
	// Scratch is the absolute path of a folder for temporary files.
	Scratch string
}

// RequestLimits restricts a process and its answer.
type RequestLimits struct {
	// Time is the wall-clock limit. Processors is the number of processors that the process may use.
	Time       time.Duration
	Processors int
	// Remedy is the advice for a request that exceeds the time.
	Remedy string
	// MemoryBytes limits the memory; 0 means no limit. FileBytes limits each written file.
	MemoryBytes, FileBytes int64
	// AnswerBytes limits the answer.
	AnswerBytes int64
}

const (
	// maxComplaintBytes limits the other output of a process.
	maxComplaintBytes = 1 << 20
	maxOpenFiles      = 256
	// SpareThreads is the number of threads beyond one per processor: those of the runtime, and of other
	// agents whose processes may belong to the same user.
	SpareThreads = 512
	// ReservedBytes is address space that does not count, above the 1.6 GiB that Go's runtime reserves.
	ReservedBytes = 2 << 30
	// lingering is how long pipes may stay open after a process, because its descendants may hold them if no
	// sandbox prevents that.
	lingering = time.Second
)

// Request is a process that serves one request. The caller must close it.
type Request struct {
	// opened holds all files opened for the process, and temporary the paths to remove. failed is why one
	// could not be opened.
	opened    []*os.File
	temporary []string
	failed    error
	scratch   string
	// inside holds the process's descriptors after the first three.
	inside []*os.File

	limits          RequestLimits
	state           *os.ProcessState
	exhausted       bool
	said, complains []byte
}

// Open prepares a process.
func (s *Server) Open() *Request { return &Request{scratch: s.Scratch} }

// own takes ownership of an opened file.
func (p *Request) own(f *os.File, err error) *os.File {
	p.failed = cmp.Or(p.failed, err)
	if f != nil {
		p.opened = append(p.opened, f)
	}
	return f
}

func (p *Request) ownTemporary(pattern string) *os.File {
	f := p.own(os.CreateTemp(p.scratch, pattern))
	if f != nil {
		p.temporary = append(p.temporary, f.Name())
	}
	return f
}

func (p *Request) ownPipe() (read, write *os.File) {
	read, write, err := os.Pipe()
	return p.own(read, err), p.own(write, err)
}

// Give passes an open file to the process as its next descriptor, from 3 on. The process itself cannot open
// files for writing.
func (p *Request) Give(f *os.File, err error) {
	if f = p.own(f, err); f != nil {
		p.inside = append(p.inside, f)
	}
}

// GiveTemporary passes an empty file for writing, which is removed with the process, and returns its path.
func (p *Request) GiveTemporary(pattern string) (path string) {
	f := p.ownTemporary(pattern)
	if f == nil {
		return ""
	}
	p.inside = append(p.inside, f)
	return f.Name()
}

// Close releases all files.
func (p *Request) Close() {
	for _, f := range p.opened {
		_ = f.Close() // some are already closed, and only the order was written here
	}
	for _, path := range p.temporary {
		_ = os.Remove(path) // agents empty the folder when they start
	}
}

// Run runs the process with an order and returns its answer, which may be forged. files lists the files that
// it reads by name. The error is a Failure, the cause of ctx, or a fault of the machine.
func (s *Server) Run(ctx context.Context, p *Request, order []byte, files []string, l RequestLimits) (answer []byte, err error) {
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
	case int64(len(p.said)) > l.AnswerBytes || len(p.complains) > maxComplaintBytes:
		return nil, Failed("crashes: floods its output")
	case !p.state.Success():
		return nil, p.Crash()
	}
	return p.said, nil
}

// serve starts the process and waits for its end, at most until ctx ends.
func (s *Server) serve(ctx context.Context, p *Request, order []byte, files []string) error {
	executable, input := p.own(os.Open("/proc/self/exe")), p.ownTemporary("order-*.json")
	answer, said := p.ownPipe()
	complaint, complained := p.ownPipe()
	if p.failed != nil {
		return p.failed
	}
	for _, path := range files {
		if err := Share(path, false); err != nil {
			return err
		}
	}
	if _, err := input.WriteAt(order, 0); err != nil { // the process reads from the current offset
		return err
	}
	inside := append([]*os.File{input, said, complained}, p.inside...)
	began, err := s.Sandbox.Start(Command{
		Executable: executable, Program: s.Args[0], Args: s.Args[1:], Dir: "/", Files: files, Events: true, Descriptors: inside,
		Limits: Limits{
			MemoryBytes: p.limits.MemoryBytes, ReservedBytes: ReservedBytes,
			ProcessorTime: time.Duration(p.limits.Processors) * p.limits.Time, Processes: p.limits.Processors + SpareThreads,
			OpenFiles: maxOpenFiles, FileBytes: p.limits.FileBytes,
		},
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, began.KillGroup)
	defer stop()
	for _, f := range inside {
		_ = f.Close() // the process has its own copy
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.said = gather(began, answer, p.limits.AnswerBytes) })
	reading.Go(func() { p.complains = gather(began, complaint, maxComplaintBytes) })
	p.state, p.exhausted, err = began.Finish()
	end := time.Now().Add(lingering)
	err = errors.Join(err, answer.SetReadDeadline(end), complaint.SetReadDeadline(end))
	reading.Wait()
	return err
}

// gather reads the output of a process, and kills a process that exceeds the limit.
func gather(p *Process, from *os.File, limit int64) []byte {
	text, _ := io.ReadAll(io.LimitReader(from, limit+1)) // until its end or the deadline
	if int64(len(text)) > limit {
		p.KillGroup()
	}
	return text
}

// Crash returns the failure of a process that ended without an answer: its exit state and the first line of
// its other output, which is untrusted.
func (p *Request) Crash() *Failure {
	status, _ := p.state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return Failed("crashes: ended by %s", strings.ToLower(status.Signal().String()))
	}
	return Failed("crashes: exits with status %d %s", status.ExitStatus(), withoutWarnings(p.complains))
}

// withoutWarnings drops the leading sanitizer warnings that instrumented programs may print in a sandbox.
func withoutWarnings(complaint []byte) []byte {
	for bytes.HasPrefix(complaint, []byte("==")) {
		_, complaint, _ = bytes.Cut(complaint, []byte("\n"))
	}
	return complaint
}
