package tracker_test

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// goOn resumes watching a job after a known event, and returns the next event or a refusal.
func (f *trackerFarm) goOn(job string, after *tilthv1.JobEvent) (*tilthv1.WatchJobResponse, error) {
	f.Helper()
	stream := must[grpc.ServerStreamingClient[tilthv1.WatchJobResponse]](f)(f.jobs.WatchJob(f.Context(),
		&tilthv1.WatchJobRequest{JobId: job, FromSequence: after.GetSequence() + 1, After: after.GetAt()}))
	return stream.Recv()
}

// TestWatcherIsToldThatAJobsHistoryWasReplaced is a regression test for a client that knows more events than the
// restored log. It waited for higher sequence numbers, and merged events of the lost generation with new ones.
func TestWatcherIsToldThatAJobsHistoryWasReplaced(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv", "pool")).GetId()
	builder, runner := f.builder(), f.runner()
	search := f.mustLease(f.tuner()).GetLease()
	f.stop()
	saved := filepath.Join(t.TempDir(), "saved.db")
	copyFile(t, f.file(), saved)
	f.start()
	f.proposeAndLease(search, builder, runner, 0, 0)
	f.proposeAndLease(search, builder, runner, 1, 1)
	told := f.events(job, 1, 4)
	if next, err := f.goOn(job, told[2]); err != nil || next.GetEvent().GetSequence() != 4 {
		t.Fatalf("got %v, %v, though nothing was replaced", next, err)
	}
	f.stop()
	copyFile(t, saved, f.file())
	f.start()
	if next, err := f.goOn(job, told[0]); err != nil || next.GetEvent().GetSequence() != 2 {
		t.Errorf("got %v, %v after an event that was kept", next, err)
	}
	_, err := f.goOn(job, told[3])
	wantStatus(t, err, codes.FailedPrecondition, wire.ReasonHistory, "event 4 of job")
	f.proposeAndLease(search, builder, runner, 0, 0)
	f.proposeAndLease(search, builder, runner, 1, 1)
	_, err = f.goOn(job, told[3])
	wantStatus(t, err, codes.FailedPrecondition, wire.ReasonHistory, "event 4 of job")
	_, err = f.goOn("job-none", told[3])
	wantStatus(t, err, codes.NotFound, "", "does not exist")
}
