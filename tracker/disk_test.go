package tracker_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/state"
)

// holdDisk blocks the next transaction, and all later ones, until release is called. It closes held once the
// transaction is blocked.
func (f *trackerFarm) holdDisk() (held <-chan struct{}, release func()) {
	begun, over := make(chan struct{}), make(chan struct{})
	var once, end sync.Once
	f.cfg.Store.Observe(func(records.Transaction) {
		once.Do(func() { close(begun) })
		<-over
	})
	release = func() { end.Do(func() { close(over) }) }
	f.Cleanup(release)
	return begun, release
}

// TestCallsThatWaitForTheDiskAreBounded because waiting calls use memory.
func TestCallsThatWaitForTheDiskAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry, Limits: state.Limits{Calls: 1}})
	held, release := f.holdDisk()
	first := make(chan error, 1)
	go func() { first <- f.trySubmit("first", spec("conv")) }()
	<-held
	const beyond = 3
	for n := range beyond {
		err := f.trySubmit(strconv.Itoa(n), spec("conv"))
		if status.Code(err) != codes.Unavailable || wire.Reason(err) != wire.ReasonOverloaded {
			t.Errorf("a call beyond the bound is answered %v", err)
		}
	}
	if got := refusals(t, registry)["load_calls"]; got != beyond {
		t.Errorf("%v refusals are counted of %d", got, beyond)
	}
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := f.trySubmit("last", spec("conv")); err != nil {
		t.Errorf("when it is over: %v", err)
	}
}

// TestWatcherIsToldOnlyWhatIsOnTheDisk because a crash must not revert what a client has seen.
func TestWatcherIsToldOnlyWhatIsOnTheDisk(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("job", spec("conv")).GetId()
	lease := f.mustLease(f.tuner()).GetLease()
	seen := f.events(job, 1, 2) // queued, running
	stream := must[tilthv1.JobService_WatchJobClient](t)(f.jobs.WatchJob(t.Context(), &tilthv1.WatchJobRequest{
		JobId: job, FromSequence: uint64(len(seen)) + 1,
	}))
	told := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		told <- err
	}()
	held, release := f.holdDisk()
	var calls sync.WaitGroup
	calls.Go(func() {
		if err := f.trySubmit("another", spec("conv")); err != nil {
			t.Error(err)
		}
	})
	<-held
	calls.Go(func() { f.propose(lease, 0, 0, "a") })
	for f.owners()[0].GetWaiting() < 2 { // the other job and the batch are in memory, but not on disk
		runtime.Gosched()
	}
	var err error
	select {
	case err = <-told:
		t.Error("a watcher is told of a proposal that is not on the disk")
		release()
	case <-time.After(200 * time.Millisecond): // nothing must arrive
		release()
		err = <-told
	}
	calls.Wait()
	if err != nil {
		t.Error(err)
	}
}
