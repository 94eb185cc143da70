package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a process that serves requests, started on first use and restarted after it dies.
type process struct {
	start func(context.Context) *exec.Cmd
	limit time.Duration

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *head
}

// ask returns the results of a batch. The error describes how the process died, or an invalid answer.
func (p *process) ask(ctx context.Context, cases []Location) ([]Result, error) {
	if p.cmd == nil {
		if err := p.launch(ctx); err != nil {
			return nil, fmt.Errorf("starting a process for test cases: %w", err)
		}
	}
	killed := make(chan struct{})
	timer := time.AfterFunc(p.limit, func() {
		defer close(killed)
		p.kill()
	})
	a, err := p.exchange(request{cases})
	expired := !timer.Stop()
	if expired {
		<-killed
	}
	if expired || err != nil {
		return nil, p.cause(expired)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	if len(a.Results) != len(cases) {
		return nil, fmt.Errorf("%d results for %d cases", len(a.Results), len(cases))
	}
	return a.Results, nil
}

// launch starts the process in its own process group, which is killed as a whole, since it runs compilers.
func (p *process) launch(ctx context.Context) (err error) {
	cmd := p.start(ctx)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	p.stderr = &head{}
	cmd.Stderr = p.stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.stdout = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	return nil
}

func (p *process) exchange(q request) (a answer, err error) {
	if err := json.NewEncoder(p.stdin).Encode(q); err != nil {
		return a, err
	}
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(line, &a)
}

func (p *process) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// errHung is the error for an exceeded time limit.
var errHung = errors.New("hung")

// cause returns the reason why a process stopped answering.
func (p *process) cause(expired bool) error {
	p.kill() // it may only have closed its output
	err := p.cmd.Wait()
	p.cmd = nil
	switch {
	case expired:
		return fmt.Errorf("%w: no result within %v", errHung, p.limit)
	case p.stderr.line() != "":
		return fmt.Errorf("crashed: %s", p.stderr.line())
	}
	return fmt.Errorf("crashed: %w", err)
}

// stop stops the process and waits for it.
func (p *process) stop() {
	if p.cmd == nil {
		return
	}
	p.stdin.Close()
	timer := time.AfterFunc(stopGrace, p.kill)
	_ = p.cmd.Wait() // it has answered everything
	timer.Stop()
}

// stopGrace is the time for a process to exit after its input has ended.
const stopGrace = 10 * time.Second

// maxHead is the number of bytes kept of a process's error output: Go prints the signal of a crash first.
const maxHead = 16 << 10

// head keeps the beginning of its input.
type head struct{ text []byte }

// Write never fails: it drops the excess.
func (h *head) Write(data []byte) (int, error) {
	h.text = append(h.text, data[:min(len(data), maxHead-len(h.text))]...)
	return len(data), nil
}

// line returns the line that names the signal or the error, or an empty string.
func (h *head) line() string {
	for line := range strings.Lines(string(h.text)) {
		if strings.HasPrefix(line, "SIG") {
			return strings.TrimSpace(line)
		}
	}
	first, _, _ := strings.Cut(string(h.text), "\n")
	return strings.TrimSpace(first)
}

// request asks a process for the results of a batch; answer contains them, or an error. Each is a line of JSON.
type request struct {
	Cases []Location `json:"cases"`
}

type answer struct {
	Results []Result `json:"results,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Serve answers requests, one after another, until in ends.
func Serve(ctx context.Context, r *Runner, in io.Reader, out io.Writer) error {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := requests.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		var a answer
		var err error
		if a.Results, err = r.Run(ctx, q.Cases); err != nil {
			a.Error = oneLine(err)
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}
