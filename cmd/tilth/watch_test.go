package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestJobOutlivesItsClient kills the client of a farm's job. The job must continue, and a new watcher must see all
// events.
func TestJobOutlivesItsClient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startFarm(t)
	model, log := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "log.jsonl")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.awaitAgents(ctx)
	const budget = 24
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0,2", "--trials", fmt.Sprint(budget), "--log", log)
	tune.start()
	awaitLines(ctx, t, log, 1)
	_ = tune.cmd.Process.Kill()
	_ = tune.cmd.Wait() // it was killed

	id := f.awaitJob(ctx)
	watched, shown := filepath.Join(f.dir, "watched.svg"), filepath.Join(f.dir, "shown.svg")
	watch := f.tilth(ctx, "jobs", "watch", id, "--tracker", f.tracker, "--plot", watched, "--log", log, "--json")
	watch.mustRun()
	var summary progress.Summary
	if err := json.Unmarshal(watch.stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if n := distinctTrials(t, log); summary.State != "done" || summary.Trials != budget || n != budget {
		t.Errorf("job ended %s with %d trials, of which %d were logged; want done with %d", summary.State, summary.Trials, n, budget)
	}
	if summary.LimitSeconds == nil || summary.TimeShares.Build <= 0 || summary.TimeShares.Search <= 0 {
		t.Errorf("the summary lacks limits or shares: %+v", summary)
	}
	f.tilth(ctx, "jobs", "show", id, "--tracker", f.tracker, "--plot", shown).mustRun()
	if a, b := mustRead(t, watched), mustRead(t, shown); !bytes.Equal(a, b) || !bytes.Contains(a, []byte(`class="curve"`)) {
		t.Errorf("the job is drawn as\n%s\nwhen it is watched and as\n%s\nwhen it is shown", a, b)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
