package runner

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/runner/answer"
)

// Pool has harness processes that have their device ready and wait to be told what to do: a driver takes a good part
// of a second to open a device. A process serves one plan after the other, of whatever workload, until something goes
// wrong in it. Processes are started where nothing is timed. They wait for the next plan for some time. The zero value
// has none yet. A nil one never has any: then each plan starts its own.
type Pool struct {
	// Idle is how long processes wait for the next plan; 20 s by default. They take memory of the device.
	Idle time.Duration

	mu sync.Mutex
	// kind is what the processes are good for.
	kind    string
	waiting []*worker
	// busy is how many others serve a plan.
	busy int
	// life counts how often all that wait were ended: those that were busy then do not come back.
	life int
	idle *time.Timer
}

// worker is a process that measures or examines, and the memory that it shares with its judge.
type worker struct {
	*process
	memory *answer.Memory
	// pool is where the process came from, and in which life of it; nil = it serves one plan only.
	pool *Pool
	life int
	// served counts the plans that it was told.
	served int
	// foreign says that a candidate's own code ran in it, which may have changed anything there.
	foreign bool
}

const (
	// poolProcesses are one that measures, one that examines, and one that replaces either when a candidate ends it.
	poolProcesses = 3
	// mostServed bounds the plans of a process, and with them what its driver may leak.
	mostServed  = 256
	defaultIdle = 20 * time.Second
	// becomeReady bounds how long a device takes until it is ready.
	becomeReady = 30 * time.Second
)

// kind tells apart what processes are good for: the harness, which may have changed, the device, and who built the
// references whose code they have run.
func (p Plan) kind() string {
	var file unix.Stat_t
	_ = unix.Stat(p.Harness, &file) // without a harness no process starts
	return fmt.Sprintf("%d %d %d %d %q %q %d %q %t", file.Dev, file.Ino, file.Mtim, file.Size, p.Harness, p.BuiltBy, p.Threads,
		p.deviceArguments(), p.Sandbox == nil)
}

// hasHostCode reports whether candidates for a device have code for its host, which runs in the process that measures.
// Whoever builds them cannot hide that: only such files are loaded as code.
func (p Plan) hasHostCode() bool { return slices.ContainsFunc(p.Candidates, isHostCode) }

func isHostCode(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // the harness says so
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == elf.ELFMAG
}

// worker is a process that is told to do as one that is started with the command, and what judges so many executions'
// outputs at a time. Its caller releases it.
func (p Plan) worker(ctx context.Context, r *results, slots int, command sandbox.Command) (*worker, *judge, error) {
	for w := p.Pool.take(ctx, p); w != nil; w = p.Pool.take(ctx, p) {
		judge, err := newJudge(r, w.memory, slots)
		if err != nil {
			w.release(ctx, false)
			return nil, nil, err
		}
		if w.foreign = p.hasHostCode(); w.told(ctx, command.Args) == nil {
			return w, judge, nil
		}
		w.release(ctx, false) // it ended while it waited
	}
	memory, err := answer.NewMemory()
	if err != nil {
		return nil, nil, err
	}
	judge, err := newJudge(r, memory, slots)
	if err != nil {
		return nil, nil, errors.Join(err, memory.Close())
	}
	if p.linked() {
		line, err := p.line(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, memory.Close())
		}
		defer line.Close()
		command.Descriptors = append(command.Descriptors, line)
	}
	proc, err := p.start(ctx, command, memory.File)
	if err != nil {
		return nil, nil, errors.Join(err, memory.Close())
	}
	return &worker{process: proc, memory: memory}, judge, nil
}

// take is a process that waits. Where none does, all that are missing are started together, and are waited for lest
// they disturb what is timed. It is nil where none becomes ready: the plan's own process then tells why.
func (s *Pool) take(ctx context.Context, p Plan) *worker {
	if s == nil || p.Device == nil || p.Device.Compiles || p.Device.Link {
		return nil
	}
	w, missing, life := s.choose(p)
	if w != nil {
		return w
	}
	started := p.serving(ctx, missing)
	if len(started) == 0 {
		return nil
	}
	for _, w := range started {
		w.pool, w.life = s, life
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != life { // closed meanwhile
		endAll(started[1:])
		return started[0]
	}
	s.busy++
	s.waiting = append(s.waiting, started[1:]...)
	return started[0]
}

// choose is a process that waits, or how many are to be started, for which life. Those of another kind are ended.
func (s *Pool) choose(p Plan) (w *worker, missing, life int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = nil
	if kind := p.kind(); kind != s.kind {
		s.dismiss()
		s.kind = kind
	}
	if len(s.waiting) == 0 {
		return nil, max(1, poolProcesses-s.busy), s.life
	}
	w, s.waiting = s.waiting[0], s.waiting[1:]
	s.busy++
	return w, 0, s.life
}

// serving starts processes that wait, and returns those that become ready.
func (p Plan) serving(ctx context.Context, n int) (started []*worker) {
	for range n {
		w, err := newServing(p)
		if err != nil {
			break // the plan's own process meets the same error, and tells it
		}
		started = append(started, w)
	}
	deadline := time.Now().Add(becomeReady)
	return slices.DeleteFunc(started, func(w *worker) bool {
		ready := w.becomesReady(ctx, time.Until(deadline))
		if !ready {
			w.end()
		}
		return !ready
	})
}

func newServing(p Plan) (*worker, error) {
	memory, err := answer.NewMemory()
	if err != nil {
		return nil, err
	}
	command := p.sandboxed(append([]string{"--serve", "1"}, p.common()...))
	command.Limits.ProcessorTime *= mostServed
	proc, err := start(p.Sandbox, command, memory.File)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	proc.stop = func() bool { return true }
	return &worker{process: proc, memory: memory}, nil
}

// becomesReady waits for that; false when the process fails, takes too long, or ctx ends.
func (w *worker) becomesReady(ctx context.Context, limit time.Duration) bool {
	w.watch(ctx)
	e, err := w.next(limit)
	return w.stop() && err == nil && e.Event == "ready"
}

// told has a process do what one does that is started with arguments, in a context.
func (w *worker) told(ctx context.Context, args []string) error {
	w.served++
	w.events.refill()
	w.watch(ctx)
	text := strings.Join(args, "\x00") + "\x00"
	if err := w.say(word{op: arguments, n: uint64(len(text))}); err != nil {
		return err
	}
	if _, err := w.words.WriteString(text); err != nil && !w.ended.Load() {
		return fmt.Errorf("telling a harness what to do: %w", err)
	}
	return nil
}

// release gives a process back, which waits for the next plan if this one ended well in it, and gives its memory back
// before. Any other is ended; how it had ended before is told as by kill.
func (w *worker) release(ctx context.Context, well bool) (ending string) {
	if w.pool == nil {
		return w.end()
	}
	well = well && !w.foreign && w.served < mostServed && w.stop() && w.becomesReady(ctx, becomeReady) && w.memory.Clear() == nil
	if w.pool.receive(w, well) {
		return ""
	}
	return w.end()
}

// receive has a process that served a plan wait for the next one; false where it is not to do so.
func (s *Pool) receive(w *worker, well bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != w.life { // closed, or of another kind, meanwhile
		return false
	}
	s.busy--
	if well {
		s.waiting = append(s.waiting, w)
	}
	return well
}

// end ends a process, and says how it had ended before; see kill.
func (w *worker) end() string {
	defer w.memory.Close()
	return w.kill()
}

// rest bounds how long the processes wait for the next plan.
func (s *Pool) rest() {
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

// Close ends all processes that wait. One that serves a plan ends with it.
func (s *Pool) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dismiss()
}

func (s *Pool) dismiss() {
	endAll(s.waiting)
	s.waiting, s.kind, s.busy = nil, "", 0
	s.life++
}

func endAll(all []*worker) {
	for _, w := range all {
		w.end()
	}
}
