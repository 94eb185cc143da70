package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestJobsTakeTurnsOnOneTuner lets two clients tune on one tuner with a single slot. Neither waits for the other to
// end, and each gets its full budget of trials.
func TestJobsTakeTurnsOnOneTuner(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes, which tunes two jobs in turns")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"tracker": {"--search-turn", "100ms"}, "tuner": {"--slots", "1"}}
	f.launchAll()
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.awaitAgents(ctx)
	const budget = 80
	var clients []*process
	for i := range 2 {
		p := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0-1", "--no-transfer",
			"--seed", fmt.Sprint(i), "--trials", fmt.Sprint(budget), "--json")
		p.start()
		clients = append(clients, p)
	}
	turns := 0
	for _, p := range clients {
		p.mustEnd()
		var summary progress.Summary
		if err := json.Unmarshal(p.stdout.Bytes(), &summary); err != nil {
			t.Fatalf("summary: %v\n%s", err, p.stdout.String())
		}
		if summary.State != "done" || summary.Trials != budget || summary.DeadLetters != 0 {
			t.Errorf("job ended %s (%s) with %d trials and %d dead letters", summary.State, summary.Reason, summary.Trials, summary.DeadLetters)
		}
		err := f.client.Watch(ctx, &tilthv1.WatchJobRequest{JobId: summary.Job}, func(e *tilthv1.JobEvent) error {
			if e.GetState().GetState() == tilthv1.JobState_JOB_STATE_RUNNING {
				turns++
			}
			return nil
		}, nil)
		if err != nil {
			t.Error(err)
		}
	}
	if turns < 3 {
		t.Errorf("the jobs had %d turns, and none waited for less than the whole of the other", turns)
	}
	t.Logf("%d turns", turns)
}
