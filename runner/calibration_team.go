package runner

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/tilth-dev/tilth/compiler/target"
)

// work processes a thread's part of the buffer. Its result prevents the compiler from removing it.
type work func(words []uint64) uint64

func fill(words []uint64) uint64 {
	for i := range words {
		words[i] = uint64(i)
	}
	return 0
}

func calculate(words []uint64) uint64 { return uint64(compute(float64(words[0]&1) + 1)) }

// team is a group of threads that run the same work simultaneously.
type team struct {
	members []chan work
	done    sync.WaitGroup
	ended   sync.WaitGroup
}

// newTeam starts threads on some processors (nil means any), each with a part of the buffer.
func newTeam(threads int, buffer []byte, cpus []int) (*team, error) {
	t, begun := &team{}, make(chan error)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&buffer[0])), len(buffer)/8)
	part := len(words) / threads
	for n := range threads {
		orders := make(chan work)
		t.members = append(t.members, orders)
		t.ended.Go(func() {
			err := target.RunOn(cpus, func() error {
				begun <- nil
				t.follow(orders, words[n*part:(n+1)*part])
				return nil
			})
			if err != nil { // the thread may not be allowed to run there
				begun <- err
			}
		})
	}
	var failed error
	for range threads {
		failed = errors.Join(failed, <-begun)
	}
	if failed != nil {
		t.stop()
		return nil, failed
	}
	return t, nil
}

// follow is the loop of one thread.
func (t *team) follow(orders <-chan work, words []uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for w := range orders {
		words[0] += w(words) & 1
		t.done.Done()
	}
}

// run runs work on all threads and returns the time until the last one is done.
func (t *team) run(w work) time.Duration {
	t.done.Add(len(t.members))
	begin := time.Now()
	for _, orders := range t.members {
		orders <- w
	}
	t.done.Wait()
	return time.Since(begin)
}

func (t *team) stop() {
	for _, orders := range t.members {
		close(orders)
	}
	t.ended.Wait()
}
