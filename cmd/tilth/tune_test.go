package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// TestUnwritableLogReportsTheAbandonedJob is a regression test: a client with an unwritable log abandoned its job
// silently.
func TestUnwritableLogReportsTheAbandonedJob(t *testing.T) {
	why := &os.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC}
	tune := &tuneCommand{app: &app{stderr: io.Discard}, tracker: trackerFlags{addr: "board:9190"}}
	err := tune.abandon(t.Context(), t.Context(), nil, "job-1", why)
	want := "write log: no space left on device: job job-1 continues: " +
		"'tilth jobs watch job-1 --tracker board:9190' follows it, 'tilth jobs cancel job-1 --tracker board:9190' ends it"
	if !errors.Is(err, syscall.ENOSPC) || err.Error() != want {
		t.Errorf("on a farm: %v, want %s", err, want)
	}

	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := &farmUnderTest{t: t, dir: t.TempDir()}
	model, db := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "r.db")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	local := f.tilth(ctx, "tune", model, "--threads", "1", "--tasks", "0", "--time", "10m", "--records", db, "--log", "/dev/full", "-q")
	local.start()
	if err := local.cmd.Wait(); err == nil {
		t.Fatal("a full log is no error")
	}
	file, err := bolt.OpenReadOnly(db, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	jobs, _, err := file.Jobs(records.JobQuery{Max: 10, MaxBytes: 1 << 20})
	if err != nil || len(jobs) != 1 || jobs[0].GetState() != tilthv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("here: jobs are %v, %v; want one, cancelled", jobs, err)
	}
}
