package hostlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
)

func newLock(t *testing.T) *hostlock.Lock {
	t.Helper()
	l, err := hostlock.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquire(t *testing.T, how func(context.Context) (func(), error)) func() {
	t.Helper()
	release, err := how(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// refused reports whether another holder has the lock.
func refused(t *testing.T, how func(context.Context) (func(), error)) bool {
	t.Helper()
	// The time suffices for an attempt, and the answer does not change while the test holds its locks.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	release, err := how(ctx)
	if err == nil {
		release()
		return false
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return true
}

func TestComputingIsSharedAndTimingIsAlone(t *testing.T) {
	l := newLock(t)
	first, second := acquire(t, l.Compute), acquire(t, l.Compute)
	if !refused(t, l.Time) {
		t.Error("timed beside two that compute")
	}
	first()
	if !refused(t, l.Time) {
		t.Error("timed beside one that computes")
	}
	second()
	timing := acquire(t, l.Time)
	if !refused(t, l.Compute) || !refused(t, l.Time) {
		t.Error("timing was not alone")
	}
	timing()
	acquire(t, l.Compute)()
}

// TestDevicesAreTimedIndependently checks that devices can be timed concurrently, each by one holder, and during
// computation, but never while the processors are timed.
func TestDevicesAreTimedIndependently(t *testing.T) {
	l := newLock(t)
	one, two := l.On("GPU-1"), l.On("MIG-2/3")
	computing, first := acquire(t, one.Compute), acquire(t, one.Time)
	second := acquire(t, two.Time)
	if !refused(t, l.On("GPU-1").Time) || !refused(t, two.Time) {
		t.Error("two were timed on a device at a time")
	}
	computing()
	first()
	if !refused(t, l.Time) {
		t.Error("timed on the processors beside a device")
	}
	acquire(t, one.Time)()
	second()
	processors := acquire(t, l.Time)
	if !refused(t, one.Time) || !refused(t, two.Time) {
		t.Error("timed on a device beside the processors")
	}
	processors()
	acquire(t, one.Time)()
}

func TestTimingIsNotStarvedByComputing(t *testing.T) {
	l := newLock(t)
	computing := acquire(t, l.Compute)
	timed := make(chan struct{})
	go func() {
		defer close(timed)
		release, err := l.Time(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		release()
	}()
	// Once the timer holds the gate, newcomers are refused although only computation is running.
	for !refused(t, l.Compute) {
	}
	computing()
	<-timed
}

func TestTimingExcludesComputation(t *testing.T) {
	l := newLock(t)
	var computing, timing atomic.Int32
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for range 20 {
				if i%3 == 0 {
					release := acquire(t, l.Time)
					if timing.Add(1) != 1 || computing.Load() != 0 {
						t.Error("timing was not alone")
					}
					timing.Add(-1)
					release()
				} else {
					release := acquire(t, l.Compute)
					computing.Add(1)
					if timing.Load() != 0 {
						t.Error("computed while something was timed")
					}
					computing.Add(-1)
					release()
				}
			}
		})
	}
	all.Wait()
}
