package runner

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// newSpareBench has two candidates for a card, and spare processes.
func newSpareBench(t *testing.T) (*deviceBench, *Spares) {
	b := newDeviceBench(t, exprtest.Product(t, 32, 32, 32), 2)
	b.plan.Kernels = b.ids
	b.plan.Limits.Candidate = 200 * time.Millisecond
	s := &Spares{Idle: time.Hour}
	b.plan.Spares = s
	t.Cleanup(s.Close)
	return b, s
}

// begun is how many processes have begun with the driver.
func (b *deviceBench) begun(t *testing.T) int {
	t.Helper()
	n, err := b.driver.Begun()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestASpareProcessReplacesOneThatEnds: two began with the driver beside the plan's own, and none begins after a fault
// as long as there is one. The next plan begins with as many.
func TestASpareProcessReplacesOneThatEnds(t *testing.T) {
	for tell, class := range map[string]tilthv1.ErrorClass{"illegal": crash, "hang": timeout} {
		t.Run(tell, func(t *testing.T) {
			b, s := newSpareBench(t)
			if err := b.driver.Tell(tell, 1); err != nil {
				t.Fatal(err)
			}
			for plan := range 2 {
				outcomes, err := b.measure(t)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range b.ids {
					if o := outcomes[id]; o.Error != class {
						t.Errorf("%.12s: %v, %s", id, o.Error, o.Message)
					}
				}
				// Each of the two fails twice, the second time alone: four processes, of which two were spare ones.
				if got := b.begun(t); got != 4*(plan+1) || len(s.waiting) > 0 {
					t.Errorf("%d processes began, and %d wait", got, len(s.waiting))
				}
			}
		})
	}
}

// TestSpareProcessesWaitForTheNextPlan: examinations, of which a plan has one at least where candidates are right,
// take them, too.
func TestSpareProcessesWaitForTheNextPlan(t *testing.T) {
	b, s := newSpareBench(t)
	for range 2 {
		outcomes, err := b.measure(t)
		if err != nil || outcomes[b.ids[0]].Error != none || outcomes[b.ids[1]].Error != none {
			t.Fatalf("%+v, %v", outcomes, err)
		}
		if len(s.waiting) == spareProcesses {
			t.Error("no spare process was used")
		}
	}
	s.begin(b.plan)
	s.settle(t.Context())
	before := b.begun(t)
	if _, err := b.measure(t); err != nil {
		t.Fatal(err)
	}
	if len(s.waiting) > 0 && b.begun(t) != before+1 {
		t.Errorf("%d processes began beside the plan's own", b.begun(t)-before-1)
	}
}

// TestACardThatVanishesIsNoCandidatesFaultWithSpareProcesses: one that had the card ready before finds it lost.
func TestACardThatVanishesIsNoCandidatesFaultWithSpareProcesses(t *testing.T) {
	b, _ := newSpareBench(t)
	if err := b.driver.Tell("vanish", 1); err != nil {
		t.Fatal(err)
	}
	outcomes, err := b.measure(t)
	if err == nil || !strings.Contains(err.Error(), "the device is lost") || len(outcomes) > 0 {
		t.Errorf("the error is %v and the outcomes are %+v", err, outcomes)
	}
}

// TestASpareProcessThatDiedIsNotUsed, nor one of another harness, and none is left when they are closed.
func TestASpareProcessThatDiedIsNotUsed(t *testing.T) {
	b, s := newSpareBench(t)
	s.begin(b.plan)
	s.settle(t.Context())
	if len(s.waiting) != spareProcesses || !s.waiting[0].ready || !s.waiting[1].ready {
		t.Fatalf("%d processes wait", len(s.waiting))
	}
	for _, one := range s.waiting {
		if err := one.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e, err := one.next(time.Minute); !errors.Is(err, io.EOF) { // it ends some time after the signal
			t.Fatalf("%+v, %v", e, err)
		}
	}
	outcomes, err := b.measure(t)
	if err != nil || outcomes[b.ids[0]].Error != none || outcomes[b.ids[1]].Error != none {
		t.Errorf("%+v, %v", outcomes, err)
	}
	s.begin(b.plan)
	first := s.waiting[0]
	other := b.plan
	other.Threads++
	s.begin(other)
	if s.waiting[0] == first || s.take(b.plan) != nil {
		t.Error("processes of another kind wait")
	}
	s.Close()
	if len(s.waiting) > 0 {
		t.Errorf("%d processes wait", len(s.waiting))
	}
}

// TestSparesAreClosedWhileTheyBecomeReady: who closes them does not wait for that, and none is left.
func TestSparesAreClosedWhileTheyBecomeReady(t *testing.T) {
	b, s := newSpareBench(t)
	s.begin(b.plan)
	stopped := s.waiting[0]
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		s.settle(t.Context())
	}()
	for taken := false; !taken; {
		select {
		case <-settled: // it was ready before it was stopped
			taken = true
		default:
			s.mu.Lock()
			taken = len(s.waiting) == 0
			s.mu.Unlock()
		}
	}
	s.Close()
	if err := stopped.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-settled
	if len(s.waiting) > 0 {
		t.Errorf("%d processes wait", len(s.waiting))
	}
}

// TestSpareProcessesDoNotWaitForEver: they take memory of the card.
func TestSpareProcessesDoNotWaitForEver(t *testing.T) {
	b, s := newSpareBench(t)
	s.Idle = time.Millisecond
	s.begin(b.plan)
	s.rest()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
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
