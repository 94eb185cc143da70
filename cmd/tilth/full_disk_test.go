package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestFarmContinuesAfterItsDiskWasFull fills the tracker's disk while a client tunes. The tracker stops and names the
// file. Once there is space and it is started again, the job ends with every trial exactly once in the client's log.
func TestFarmContinuesAfterItsDiskWasFull(t *testing.T) {
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	data := storetest.SmallDisk(t, 8<<20)
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"tracker": {"--data", data}}
	f.launchAll()
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	const budget = 36
	log := filepath.Join(f.dir, "trials.jsonl")
	f.awaitAgents(ctx)
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0-2", "--trials", fmt.Sprint(budget), "--log", log, "--json")
	tune.start()
	recorded := f.recordedTrials(ctx)
	for range killAfter {
		<-recorded
	}

	ballast := filepath.Join(data, "ballast")
	fillDisk(t, ballast)
	f.outgrow(ctx)
	tracker := f.running["tracker"]
	defer context.AfterFunc(ctx, func() { _ = tracker.Process.Kill() })()
	if err := tracker.Wait(); err == nil {
		t.Error("the tracker ends without an error")
	}
	delete(f.running, "tracker")
	said, err := os.ReadFile(filepath.Join(f.dir, "tracker.log"))
	if err != nil || !strings.Contains(string(said), "no space left on device") || !strings.Contains(string(said), data) {
		t.Errorf("the tracker says, %v:\n%s", err, said)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.launch("tracker")
	tune.mustEnd()
	var summary progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.State != "done" || summary.Trials != budget {
		t.Errorf("the job ended %s (%s) with %d trials, want %d", summary.State, summary.Reason, summary.Trials, budget)
	}
	if n := distinctTrials(t, log); n != budget {
		t.Errorf("the log has %d distinct trials, want %d", n, budget)
	}
}

// outgrow imports records until the tracker fails. Trials alone may fit in free pages of its records file.
func (f *farmUnderTest) outgrow(ctx context.Context) {
	var err error
	for second := int64(1); err == nil; second++ {
		r := storetest.Record("elsewhere", "workload", second, 1)
		r.Measurement.Candidate.Origin = bytes.Repeat([]byte("x"), 200<<10)
		_, _, err = f.client.ImportRecords(ctx, storesync.Each([]*tilthv1.Record{r}))
	}
}

// fillDisk writes a file until there is no space left.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}
