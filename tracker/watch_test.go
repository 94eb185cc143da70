package tracker

import (
	"context"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// silent is a stream without messages.
type silent struct {
	grpc.ServerStreamingServer[tilthv1.WatchJobResponse]
	ctx context.Context
}

func (s silent) Context() context.Context { return s.ctx }

// TestWatchesOfEndedJobsUseNoMemory checks that repeated watches of ended or nonexistent jobs do not use memory.
func TestWatchesOfEndedJobsUseNoMemory(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "tilth.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var w records.Write
	w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: "job-1", State: tilthv1.JobState_JOB_STATE_DONE}})
	if err := db.Commit(&w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	tracker, err := New(Config{Store: db, ArtifactsDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tracker.WatchJob(&tilthv1.WatchJobRequest{JobId: "job-1"}, silent{ctx: t.Context()}); err != nil {
		t.Errorf("an ended job: %v", err)
	}
	if err := tracker.WatchJob(&tilthv1.WatchJobRequest{JobId: "job-2"}, silent{ctx: t.Context()}); status.Code(err) != codes.NotFound {
		t.Errorf("a job that is not there: %v", err)
	}
	if n := tracker.coordinator.Watches().Count(); n != 0 {
		t.Errorf("%d subscriptions are kept", n)
	}
}
