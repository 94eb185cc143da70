package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/runner/answer"
	"github.com/tilth-dev/tilth/sandbox"
)

// Spares are harness processes that have their device ready and wait to be told what to do, so that one that a
// candidate has ended is replaced at once: a driver takes a good part of a second for it. They are started where
// nothing is timed, at the beginning of a plan, beside its first process. What is left over waits for the next plan,
// for some time. The zero value has none yet. A nil one never has any.
type Spares struct {
	// Idle is how long spare processes wait for the next plan; 20 s by default. They take memory of the device.
	Idle time.Duration

	mu sync.Mutex
	// kind is what the processes are good for.
	kind    string
	waiting []*spare
	idle    *time.Timer
}

// spare is a process, and the memory that it shares with the judge.
type spare struct {
	*process
	memory *answer.Memory
	ready  bool
}

const (
	// spareProcesses are how many wait: for a crash, and for an examination.
	spareProcesses = 2
	defaultIdle    = 20 * time.Second
	// becomeReady bounds how long a device takes until it is ready.
	becomeReady = 30 * time.Second
)

// begin starts spare processes of a plan's kind, where some are missing, and ends those of another kind.
func (s *Spares) begin(p Plan) {
	if s == nil || p.Device == nil || p.Device.Compiles {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = nil
	if kind := p.kind(); kind != s.kind {
		s.dismiss()
		s.kind = kind
	}
	for len(s.waiting) < spareProcesses {
		one, err := newSpare(p)
		if err != nil {
			return // the plan's own process meets the same error, and tells it
		}
		s.waiting = append(s.waiting, one)
	}
}

// kind tells spare processes of plans apart: the harness, which may have changed, and the device.
func (p Plan) kind() string {
	var file unix.Stat_t
	_ = unix.Stat(p.Harness, &file) // without a harness no process starts
	return fmt.Sprint(file.Dev, file.Ino, file.Mtim, file.Size, p.Harness, p.Threads, p.deviceArguments(), p.Sandbox == nil)
}

func newSpare(p Plan) (*spare, error) {
	memory, err := answer.NewMemory()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--spare", "1"}, p.common()...)
	proc, err := start(p.Sandbox, p.sandboxed(args), memory.File)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	proc.stop = func() bool { return true }
	return &spare{process: proc, memory: memory}, nil
}

// settle waits until all spare processes are ready, so that they disturb nothing that is timed. Who closes the spares
// meanwhile does not wait for that.
func (s *Spares) settle(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	waiting, kind := s.waiting, s.kind
	s.waiting = nil
	s.mu.Unlock()
	deadline := time.Now().Add(becomeReady)
	waiting = slices.DeleteFunc(waiting, func(one *spare) bool {
		if !one.ready && !one.becomesReady(ctx, time.Until(deadline)) {
			one.end()
			return true
		}
		return false
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting = append(s.waiting, waiting...); s.kind != kind { // closed
		s.dismiss()
	}
}

// becomesReady waits for that; false when the process fails, takes too long, or ctx ends.
func (s *spare) becomesReady(ctx context.Context, limit time.Duration) bool {
	s.watch(ctx)
	e, err := s.next(limit)
	s.ready = s.stop() && err == nil && e.Event == "ready"
	return s.ready
}

// take is a spare process that is ready; nil when there is none.
func (s *Spares) take(p Plan) *spare {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, one := range s.waiting {
		if one.ready && s.kind == p.kind() {
			s.waiting = slices.Delete(s.waiting, k, k+1)
			return one
		}
	}
	return nil
}

// rest has what is left over wait for the next plan, for some time.
func (s *Spares) rest() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(cmp.Or(s.Idle, defaultIdle), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.idle == timer { // no plan has begun since
			s.dismiss()
		}
	})
	s.idle = timer
}

// Close ends all spare processes.
func (s *Spares) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dismiss()
}

func (s *Spares) dismiss() {
	for _, one := range s.waiting {
		one.end()
	}
	s.waiting, s.kind = nil, ""
}

func (s *spare) end() {
	s.kill()
	_ = s.memory.Close()
}

// told has a spare process do what one does that is started with arguments, in a context.
func (s *spare) told(ctx context.Context, args []string) error {
	s.watch(ctx)
	text := strings.Join(args, "\x00") + "\x00"
	if err := s.say(word{op: arguments, n: uint64(len(text))}); err != nil {
		return err
	}
	if _, err := s.words.WriteString(text); err != nil && !s.ended.Load() {
		return fmt.Errorf("telling a spare harness what to do: %w", err)
	}
	return nil
}

// harness starts a process for a plan, and what judges it on so many executions' outputs at a time: a spare process
// where there is one.
func (p Plan) harness(ctx context.Context, r *results, slots int, command sandbox.Command) (*process, *judge, error) {
	if one := p.Spares.take(p); one != nil {
		judge, err := judgeWith(r, one.memory, slots)
		if err == nil {
			err = one.told(ctx, command.Args)
		}
		if err == nil {
			return one.process, judge, nil
		}
		one.end()
	}
	judge, err := newJudge(r, slots)
	if err != nil {
		return nil, nil, err
	}
	proc, err := startProcess(ctx, p.Sandbox, command, judge.memory.File)
	if err != nil {
		judge.close()
		return nil, nil, err
	}
	return proc, judge, nil
}
