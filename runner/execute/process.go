package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/agent/failure"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/sandbox"
)

// Failure is the packages' own fault, or that of their inputs: it would come again.
type Failure struct{ message string }

// Error is the message.
func (f *Failure) Error() string { return f.message }

// Executor runs packages in processes of their own.
type Executor struct {
	// Args start a process that calls Serve, of this very program, whatever has become of its file: its name and
	// arguments.
	Args []string
	// Sandbox is what processes run in; nil = limits only.
	Sandbox *sandbox.Sandbox
	// Scratch is the absolute path of a folder for temporary files.
	Scratch string
}

const (
	// mostAnswerBytes bounds what a process answers: less than a tracker takes of a result.
	mostAnswerBytes = 6 << 20
	// mostComplaintBytes bounds what it may say besides.
	mostComplaintBytes = 1 << 20
	mostOpenFiles      = 256
	// spareThreads are those of the runtime, and of runners beside this one, whose processes may belong to the same
	// user.
	spareThreads = 512
	// reservedBytes are more than Go's runtime reserves, which is 1.6 GiB.
	reservedBytes = 2 << 30
	// lingering is how long pipes may stay open after a process: something may have them that it started, where no
	// sandbox forbids that.
	lingering = time.Second
)

// Try starts a process that runs nothing. The error says why none can run packages.
func (e *Executor) Try(ctx context.Context) error {
	_, err := e.Run(ctx, Request{}, Limits{})
	return err
}

// Run runs packages in a process and returns what they came to. The error is a Failure, the cause with which ctx
// ended, or the machine's fault. The request's paths are this process's and absolute; others are let read the files.
func (e *Executor) Run(ctx context.Context, request Request, limits Limits) (*Result, error) {
	limits = limits.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, &Failure{fmt.Sprintf("takes longer than %v: allow more time, or ask for fewer executions", limits.Time)})
	defer cancel()
	p := &process{order: order{Request: request}}
	defer p.close()
	err := p.prepare(e.Scratch)
	if err == nil {
		err = p.run(ctx, e, limits)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("run packages: %w", err)
	}
	return p.result()
}

// process is one that runs packages.
type process struct {
	order order
	// opened are all files of this process for it, temporary those of them to be removed. failed is why one could not
	// be opened.
	opened    []*os.File
	temporary []string
	failed    error
	// inside are its descriptors, and its ends of the pipes answer and complaint.
	executable        *os.File
	inside            []*os.File
	answer, complaint *os.File

	state           *os.ProcessState
	exhausted       bool
	said, complains []byte
}

// own takes over a file that was opened.
func (p *process) own(f *os.File, err error) *os.File {
	p.failed = cmp.Or(p.failed, err)
	if f != nil {
		p.opened = append(p.opened, f)
	}
	return f
}

func (p *process) ownTemporary(scratch, pattern string) *os.File {
	f := p.own(os.CreateTemp(scratch, pattern))
	if f != nil {
		p.temporary = append(p.temporary, f.Name())
	}
	return f
}

func (p *process) ownPipe() (read, write *os.File) {
	read, write, err := os.Pipe()
	return p.own(read, err), p.own(write, err)
}

// close gives up what prepare opened.
func (p *process) close() {
	for _, f := range p.opened {
		_ = f.Close() // some are closed already; nothing was written by this process but its order
	}
	for _, path := range p.temporary {
		_ = os.Remove(path) // the folder is emptied when a runner starts
	}
}

// prepare opens what the process finds open: it opens no file for writing itself.
func (p *process) prepare(scratch string) error {
	classes, err := target.Classes()
	if err != nil {
		return err
	}
	p.order.Classes = classes
	p.executable = p.own(os.Open("/proc/self/exe"))
	input := p.ownTemporary(scratch, "order-*.json")
	outputs := p.own(os.OpenFile(cmp.Or(p.order.Outputs, os.DevNull), os.O_WRONLY, 0))
	var answer, complaint *os.File
	p.answer, answer = p.ownPipe()
	p.complaint, complaint = p.ownPipe()
	p.inside = []*os.File{input, answer, complaint, outputs}
	for range p.order.Packages {
		if object := p.ownTemporary(scratch, "object-*.so"); object != nil {
			p.inside, p.order.Objects = append(p.inside, object), append(p.order.Objects, object.Name())
		}
	}
	if p.failed != nil {
		return p.failed
	}
	for _, path := range p.order.files() {
		if err := sandbox.Share(path, false); err != nil {
			return err
		}
	}
	text, err := json.Marshal(p.order)
	if err != nil {
		return err
	}
	_, err = input.WriteAt(text, 0) // the process reads it from where the file is at
	return err
}

// command is what starts the process.
func (p *process) command(e *Executor, l Limits) sandbox.Command {
	processors := target.Processors()
	return sandbox.Command{Executable: p.executable, Program: e.Args[0], Args: e.Args[1:], Dir: "/", Files: p.order.files(), Events: true,
		Descriptors: p.inside, Limits: sandbox.Limits{MemoryBytes: l.MemoryBytes, ReservedBytes: reservedBytes,
			ProcessorTime: time.Duration(processors) * l.Time, Processes: processors + spareThreads, OpenFiles: mostOpenFiles, FileBytes: l.OutputBytes}}
}

// run starts the process and waits for its end, which comes with ctx's at the latest.
func (p *process) run(ctx context.Context, e *Executor, l Limits) error {
	began, err := e.Sandbox.Start(p.command(e, l))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, began.KillGroup)
	defer stop()
	for _, f := range p.inside {
		_ = f.Close() // it has its own
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.said = gather(began, p.answer, mostAnswerBytes) })
	reading.Go(func() { p.complains = gather(began, p.complaint, mostComplaintBytes) })
	p.state, p.exhausted, err = began.Finish()
	end := time.Now().Add(lingering)
	err = errors.Join(err, p.answer.SetReadDeadline(end), p.complaint.SetReadDeadline(end))
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

// result reads the answer of a process that has ended.
func (p *process) result() (*Result, error) {
	if p.exhausted {
		return nil, &Failure{"crashes: uses up its memory"}
	}
	if len(p.said) > mostAnswerBytes || len(p.complains) > mostComplaintBytes {
		return nil, &Failure{"crashes: floods its output"}
	}
	if p.state.Success() {
		if result, err := readAnswer(p.said, p.order.Request); result != nil || err != nil {
			return result, err
		}
	}
	status, _ := p.state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return nil, &Failure{fmt.Sprintf("crashes: ended by %s", strings.ToLower(status.Signal().String()))}
	}
	return nil, &Failure{strings.TrimSpace(fmt.Sprintf("crashes: exits with status %d %s", status.ExitStatus(), failure.Message(string(p.complains))))}
}

// fits says whether a result, which packages may have forged, is one of a request.
func (r *Result) fits(request Request) bool {
	if r == nil || len(r.Packages) != len(request.Packages) {
		return false
	}
	return !slices.ContainsFunc(r.Packages, func(p PackageResult) bool {
		return len(p.Samples) != request.Repeat || slices.ContainsFunc(p.Samples, func(seconds float64) bool { return seconds < 0 })
	})
}
