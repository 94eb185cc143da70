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
)

// Pool keeps harness processes with an open device, because drivers take a large part of a second to open
// one. A process serves one plan after the other, of any workload, until it fails. Processes start while
// nothing is timed and wait for the next plan for a limited time. The zero value is an empty pool. A nil pool
// stays empty, so that each plan starts its own process.
type Pool struct {
	// Idle is how long processes wait for the next plan; 20 s by default. They occupy device memory.
	Idle time.Duration

	mu sync.Mutex
	// kind identifies what the processes can be used for.
	kind    string
	waiting []*worker
	// busy counts the processes serving a plan.
	busy int
	// life counts how often all idle processes were ended. Processes that were busy then do not return to the pool.
	life int
	idle *time.Timer
}

// worker is a measuring or examining process, with the memory shared with its judge.
type worker struct {
	*process
	memory *Memory
	// pool is the pool that the process came from; nil if it serves one plan only.
	pool *Pool
	life int
	// served counts its plans.
	served int
	// foreign is set if a candidate's host code ran in the process, which may have changed its state.
	foreign bool
}

const (
	// poolProcesses is 4: one measures, one examines, one rehearses, and one replaces those that a candidate ends.
	poolProcesses = 4
	// maxServed limits the plans of a process, and thereby leaks of its driver.
	maxServed   = 256
	defaultIdle = 20 * time.Second
	// becomeReady is the time limit for opening a device.
	becomeReady = 30 * time.Second
)

// kind returns a key of what processes can be used for: the harness, which may change, the device, and the
// builder of the references whose code they ran.
func (p Plan) kind() string {
	var file unix.Stat_t
	_ = unix.Stat(p.Harness, &file) // without a harness no process starts
	return fmt.Sprintf("%d %d %d %d %q %q %d %q %t", file.Dev, file.Ino, file.Mtim, file.Size, p.Harness, p.BuiltBy, p.Threads,
		p.deviceArguments(), p.Sandbox == nil)
}

// hasHostCode reports whether device candidates include host code, which runs in the measuring process.
// Builders cannot hide it, because only such files are loaded as code.
func (p Plan) hasHostCode() bool { return slices.ContainsFunc(p.Candidates, isHostCode) }

func isHostCode(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // the harness reports it
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == elf.ELFMAG
}

// worker returns a process that acts as if started with the command, and its judge for a number of
// executions' outputs. The caller must release it.
func (p Plan) worker(ctx context.Context, r *results, slots int, command sandbox.Command) (*worker, *judge, error) {
	for w := p.Pool.take(ctx, p); w != nil; w = p.Pool.take(ctx, p) {
		judge, err := newJudge(r, w.memory, slots)
		if err != nil {
			w.release(ctx, false)
			return nil, nil, err
		}
		if w.foreign = p.hasHostCode(); w.reconfigure(ctx, command.Args) == nil {
			return w, judge, nil
		}
		w.release(ctx, false) // it ended while idle
	}
	memory, err := NewMemory()
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

// take returns an idle process. Without one, it starts all missing processes and waits for them, so that starting
// does not disturb timing. It returns nil if no process becomes ready. The plan's own process then reports the cause.
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

// choose returns an idle process, or the number to start and their life. It ends processes of another kind.
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

// serving starts processes and returns those that become ready.
func (p Plan) serving(ctx context.Context, n int) (started []*worker) {
	for range n {
		w, err := newServing(p)
		if err != nil {
			break // the plan's own process reports the same error
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
	memory, err := NewMemory()
	if err != nil {
		return nil, err
	}
	command := p.sandboxed(append([]string{"--serve", "1"}, p.common()...))
	command.Limits.ProcessorTime *= maxServed
	proc, err := start(p.Sandbox, command, memory.File)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	proc.stop = func() bool { return true }
	return &worker{process: proc, memory: memory}, nil
}

// becomesReady waits until the process is ready. It returns false if the process fails, takes too long, or ctx ends.
func (w *worker) becomesReady(ctx context.Context, limit time.Duration) bool {
	w.watch(ctx)
	e, err := w.next(limit)
	return w.stop() && err == nil && e.Event == "ready"
}

// reconfigure makes a process act as if started with arguments.
func (w *worker) reconfigure(ctx context.Context, args []string) error {
	w.served++
	w.events.limit.N = maxReportBytes
	w.watch(ctx)
	text := strings.Join(args, "\x00") + "\x00"
	if err := w.send(command{op: cmdArguments, n: uint64(len(text))}); err != nil {
		return err
	}
	if _, err := w.commands.WriteString(text); err != nil && !w.ended.Load() {
		return fmt.Errorf("sending a command to the harness: %w", err)
	}
	return nil
}

// release returns a process to the pool if it served its plan well, or else ends it. It first releases the
// process's memory. ending is as in kill.
func (w *worker) release(ctx context.Context, well bool) (ending string) {
	if w.pool == nil {
		return w.end()
	}
	well = well && !w.foreign && w.served < maxServed && w.stop() && w.becomesReady(ctx, becomeReady) && w.memory.Clear() == nil
	if w.pool.receive(w, well) {
		return ""
	}
	return w.end()
}

// receive returns a process to the pool. It returns false if the pool does not accept it.
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

// end ends a process and returns how it had ended before; see kill.
func (w *worker) end() string {
	defer w.memory.Close()
	return w.kill()
}

// rest starts the timer that ends idle processes.
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
		if s.idle == timer { // no plan has started since
			s.dismiss()
		}
	})
	s.idle = timer
}

// Close ends all idle processes. A busy one ends after its plan.
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
