package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// newPoolBench returns two candidates for a GPU, and a pool of processes.
func newPoolBench(t *testing.T) (*deviceBench, *Pool) {
	b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 2)
	b.plan.Kernels = b.ids
	b.plan.Limits.Candidate = 200 * time.Millisecond
	s := &Pool{Idle: time.Hour}
	b.plan.Pool = s
	t.Cleanup(s.Close)
	return b, s
}

// begun returns the number of processes that have initialised the driver.
func (b *deviceBench) begun(t *testing.T) int {
	t.Helper()
	n, err := b.driver.Begun()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// passes measures and checks that all candidates are correct.
func (b *deviceBench) passes(t *testing.T) {
	t.Helper()
	outcomes, err := b.measure(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range b.ids {
		if o := outcomes[id]; o.Error != none || len(o.Samples) == 0 {
			t.Errorf("%.12s: %v, %s, %d samples", id, o.Error, o.Message, len(o.Samples))
		}
	}
}

// warmed waits until all processes of the plan's pool are idle.
func (b *deviceBench) warmed(t *testing.T, s *Pool) {
	t.Helper()
	w := s.take(t.Context(), b.plan)
	if w == nil || !s.receive(w, true) || len(s.waiting) != poolProcesses {
		t.Fatalf("%d processes wait", len(s.waiting))
	}
}

// TestProcessesServePlansOfAllWorkloads checks that only the first three processes initialise the driver, whatever
// earlier plans used of the GPU's memory, modules and the process's memory. No data of earlier plans may remain on
// the GPU.
func TestProcessesServePlansOfAllWorkloads(t *testing.T) {
	b, s := newPoolBench(t)
	other := newDeviceBench(t, kerneltest.Product(t, 1, 512, 800), 2)
	if err := b.driver.PlayAlso(other.driver); err != nil {
		t.Fatal(err)
	}
	other.plan.Device, other.plan.Pool, other.plan.Kernels = b.plan.Device, s, other.ids
	// The larger workload fits once beside the cache-flushing buffer, and the modules of one plan fit beside the
	// calibration.
	for what, number := range map[string]int{"memory": 5, "modules": 3, "clean": 1} {
		if err := b.driver.Tell(what, number); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		b.passes(t)
		other.passes(t)
	}
	if n := b.begun(t); n != poolProcesses || len(s.waiting) != poolProcesses || s.busy != 0 {
		t.Errorf("%d processes began, %d wait and %d are busy", n, len(s.waiting), s.busy)
	}
	for _, w := range s.waiting {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", w.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{"reference.so", "answers"} {
			if strings.Contains(string(maps), left) {
				t.Errorf("a process that waits has %s", left)
			}
		}
	}
}

// TestProcessThatSawAFaultServesNoOtherPlan checks that it is ended, and that idle processes are used first.
func TestProcessThatSawAFaultServesNoOtherPlan(t *testing.T) {
	for tell, class := range map[string]tilthv1.ErrorClass{"illegal": crash, "hang": timeout} {
		t.Run(tell, func(t *testing.T) {
			b, s := newPoolBench(t)
			if err := b.driver.Tell(tell, 1); err != nil {
				t.Fatal(err)
			}
			for plan := range 3 {
				outcomes, err := b.measure(t)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range b.ids {
					if o := outcomes[id]; o.Error != class {
						t.Errorf("%.12s: %v, %s", id, o.Error, o.Message)
					}
				}
				// Each of the two fails twice, the second time alone, so a plan uses up four processes.
				if got := b.begun(t); got != 4*(plan+1)+len(s.waiting) || len(s.waiting) >= poolProcesses || s.busy != 0 {
					t.Errorf("%d processes began, %d wait and %d are busy", got, len(s.waiting), s.busy)
				}
			}
		})
	}
}

// TestProcessThatSawAWrongResultServesNoOtherPlan because the candidate may have corrupted more than its results.
func TestProcessThatSawAWrongResultServesNoOtherPlan(t *testing.T) {
	b, s := newPoolBench(t)
	text, err := os.ReadFile(b.plan.Candidates[1])
	if err != nil {
		t.Fatal(err)
	}
	swapped := strings.Replace(string(text), " a0 a1 a2\n", " a1 a0 a2\n", 1)
	if err := os.WriteFile(b.plan.Candidates[1], []byte(swapped), 0o600); err != nil {
		t.Fatal(err)
	}
	b.warmed(t, s)
	before := slices.Clone(s.waiting)
	outcomes, err := b.measure(t)
	if err != nil || outcomes[b.ids[0]].Error != none || outcomes[b.ids[1]].Error != wrong {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	// It is wrong beside the other candidate, and once more alone.
	if slices.Contains(s.waiting, before[0]) || len(s.waiting) != poolProcesses-2 || s.busy != 0 {
		t.Errorf("%d processes wait and %d are busy", len(s.waiting), s.busy)
	}
}

// TestProcessReportsAsMuchInEachPlan checks that the limit on output applies per plan.
func TestProcessReportsAsMuchInEachPlan(t *testing.T) {
	b, s := newPoolBench(t)
	b.passes(t)
	for _, w := range s.waiting {
		w.events.limit.N = 0
	}
	b.passes(t)
	if n := b.begun(t); n != poolProcesses {
		t.Errorf("%d processes began", n)
	}
}

// TestProcessesAreReplacedAfterSomePlans checks that it is then replaced.
func TestProcessesAreReplacedAfterSomePlans(t *testing.T) {
	b, s := newPoolBench(t)
	b.warmed(t, s)
	for _, w := range s.waiting {
		w.served = maxServed - 1
	}
	b.passes(t)
	for _, w := range s.waiting {
		if w.served >= maxServed {
			t.Errorf("a process that served %d plans waits for another", w.served)
		}
	}
	if s.busy != 0 {
		t.Errorf("%d processes are busy", s.busy)
	}
}

// TestCardThatVanishesIsNoCandidatesFaultInAPool covers a process that was initialised before the GPU was lost.
func TestCardThatVanishesIsNoCandidatesFaultInAPool(t *testing.T) {
	b, _ := newPoolBench(t)
	if err := b.driver.Tell("vanish", 1); err != nil {
		t.Fatal(err)
	}
	outcomes, err := b.measure(t)
	if err == nil || !strings.Contains(err.Error(), "the device is lost") || len(outcomes) > 0 {
		t.Errorf("the error is %v and the outcomes are %+v", err, outcomes)
	}
}

// TestProcessThatDiedIsNotUsed also covers processes of other kinds, and checks that none remains after the pool is
// closed.
func TestProcessThatDiedIsNotUsed(t *testing.T) {
	b, s := newPoolBench(t)
	b.warmed(t, s)
	for _, w := range s.waiting {
		if err := w.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e, err := w.next(time.Minute); !errors.Is(err, io.EOF) { // some time after the signal
			t.Fatalf("%+v, %v", e, err)
		}
	}
	b.passes(t)
	if n := b.begun(t); n != 2*poolProcesses {
		t.Errorf("%d processes began", n)
	}
	for name, change := range map[string]func(*Plan){
		"threads": func(p *Plan) { p.Threads++ },
		"builder": func(p *Plan) { p.BuiltBy = "mallory" },
	} {
		b.warmed(t, s)
		first, other := s.waiting[0], b.plan
		change(&other)
		w := s.take(t.Context(), other)
		if w == first || len(s.waiting) != poolProcesses-1 || s.waiting[0] == first {
			t.Errorf("other %s: processes of another kind wait", name)
		}
		w.release(t.Context(), false)
	}
	s.Close()
	if len(s.waiting) > 0 {
		t.Errorf("%d processes wait", len(s.waiting))
	}
}

// TestProcessThatIsBusyWhenThePoolIsClosedEndsWithItsPlan although another plan of its kind has started.
func TestProcessThatIsBusyWhenThePoolIsClosedEndsWithItsPlan(t *testing.T) {
	b, s := newPoolBench(t)
	busy := s.take(t.Context(), b.plan)
	s.Close()
	b.warmed(t, s)
	if s.receive(busy, true) {
		t.Error("it waits for another plan")
	}
	busy.end()
	if len(s.waiting) != poolProcesses || s.busy != 0 {
		t.Errorf("%d processes wait and %d are busy", len(s.waiting), s.busy)
	}
}

// TestProcessesAreEndedThatBecomeReadyInAPoolThatWasClosed except the one that the plan uses.
func TestProcessesAreEndedThatBecomeReadyInAPoolThatWasClosed(t *testing.T) {
	b, s := newPoolBench(t)
	if err := b.driver.Tell("begin", 50); err != nil {
		t.Fatal(err)
	}
	taken := make(chan *worker)
	go func() { taken <- s.take(t.Context(), b.plan) }()
	for begun := 0; begun == 0; begun = b.begun(t) {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if w := <-taken; w == nil || s.receive(w, true) {
		t.Error("the plan has no process, or one that another plan may have")
	} else {
		w.end()
	}
	if len(s.waiting) > 0 {
		t.Errorf("%d processes wait", len(s.waiting))
	}
}

// TestProcessesDoNotWaitForEver because they use memory of the GPU.
func TestProcessesDoNotWaitForEver(t *testing.T) {
	b, s := newPoolBench(t)
	s.Idle = time.Millisecond
	b.warmed(t, s)
	s.rest()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := len(s.waiting)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes wait", n)
		}
	}
}
