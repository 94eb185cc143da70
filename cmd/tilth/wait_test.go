package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestTuneReportsALostDeviceAndResumes stops and restarts the runner of a tuning job.
func TestTuneReportsALostDeviceAndResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startFarm(t)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.awaitAgents(ctx)
	const budget = 30
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0", "--trials", "30", "--json")
	said, err := os.Create(filepath.Join(f.dir, "said")) // read while it is written
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	tune.cmd.Stderr = said
	tune.start()
	recorded := f.recordedTrials(ctx)
	<-recorded
	f.tilth(ctx, "devices", "cordon", "test/runner", "--tracker", f.tracker, "--reason", "fan").mustRun()
	f.until(ctx, "tune does not say that it waits", func() bool {
		text, err := os.ReadFile(said.Name())
		return err == nil && strings.Contains(string(text), "waiting: the only device of class")
	})
	f.tilth(ctx, "devices", "uncordon", "test/runner", "--tracker", f.tracker).mustRun()
	tune.mustEnd()
	var summary progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.State != "done" || summary.Trials != budget {
		t.Errorf("job ended %s (%s) with %d trials", summary.State, summary.Reason, summary.Trials)
	}
}

// TestJobWithoutResultsFails checks that the command fails although the job is done.
func TestJobWithoutResultsFails(t *testing.T) {
	job := &tilthv1.Job{Id: "j", Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv", Weight: 1}}}}
	finish := func(known float64) error {
		job.Progress = []*tilthv1.TaskProgress{{KnownBestSeconds: known}}
		w := &follower{job: job, tally: progress.NewTally(job, nil)}
		w.tally.Add(&tilthv1.JobEvent{Event: &tilthv1.JobEvent_State{
			State: &tilthv1.JobStateChanged{State: tilthv1.JobState_JOB_STATE_DONE, Reason: "trials spent"},
		}})
		return w.finish(&app{stdout: io.Discard, stderr: io.Discard}, progress.Summary{})
	}
	if err := finish(0); err == nil || !strings.Contains(err.Error(), "no trial was measured: trials spent") {
		t.Errorf("without a trial: %v", err)
	}
	if err := finish(0.5); err != nil {
		t.Errorf("with a best from before: %v", err)
	}
}
