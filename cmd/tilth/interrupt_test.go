package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestInterruptKeepsWhatWasMeasured interrupts a tuning process. It must end by itself and store all logged trials in
// the records.
func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := &farmUnderTest{t: t, dir: t.TempDir()}
	model, log, db := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "log.jsonl"), filepath.Join(f.dir, "r.db")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	tune := f.tilth(ctx, "tune", model, "--threads", "1", "--time", "10m", "--log", log, "--records", db, "--json")
	tune.start()
	awaitLines(ctx, t, log, 3)
	if err := tune.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	tune.mustEndInterrupted()

	var summary progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &summary); err != nil {
		t.Fatalf("summary: %v\n%s", err, tune.stdout.String())
	}
	if summary.State != "cancelled" || summary.Reason != "interrupted" {
		t.Errorf("job ended %s (%s), want cancelled (interrupted)", summary.State, summary.Reason)
	}
	logged := distinctTrials(t, log)
	list := f.tilth(ctx, "records", "list", "--records", db, "--json")
	list.mustRun()
	var records []recordRow
	if err := json.Unmarshal(list.stdout.Bytes(), &records); err != nil {
		t.Fatal(err)
	}
	if len(records) != logged || logged != summary.Trials {
		t.Errorf("%d records, %d logged, %d in the summary: want the same", len(records), logged, summary.Trials)
	}
}

// awaitLines waits until a file has n lines.
func awaitLines(ctx context.Context, t *testing.T, path string, n int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(path); err == nil && bytes.Count(b, []byte("\n")) >= n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s has not got %d lines", path, n)
		}
	}
}

// TestInterruptStopsTiming interrupts a run that would take years. It must fail with a one-line message.
func TestInterruptStopsTiming(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := &farmUnderTest{t: t, dir: t.TempDir()}
	model, pkg, out := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "mlp.tar"), filepath.Join(f.dir, "out.npz")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.tilth(ctx, "compile", model, "--untuned", "-o", pkg).mustRun()
	timed := f.tilth(ctx, "run", pkg, "--outputs", out, "--print-time", "--number", "1000000000")
	timed.start()
	awaitLines(ctx, t, out, 0) // outputs are written before timing
	if err := timed.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	timed.mustEndInterrupted()
}

// mustEndInterrupted checks for a one-line message and the shells' exit status for interrupts.
func (p *process) mustEndInterrupted() {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitSignal+int(syscall.SIGINT) {
		p.t.Errorf("%v, want exit status 130", err)
	}
	lines := strings.Split(strings.TrimSuffix(p.stderr.String(), "\n"), "\n")
	if last := lines[len(lines)-1]; last != "tilth: interrupted" || strings.Count(p.stderr.String(), "tilth: ") != 1 {
		p.t.Errorf("stderr is %q, want to hear that it was interrupted, and nothing else", p.stderr.String())
	}
}

// TestInterruptsAreNotReportedAsFailures is a regression test: an interrupt during the measurement of the machine
// printed "signal: killed".
func TestInterruptsAreNotReportedAsFailures(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := &farmUnderTest{t: t, dir: t.TempDir(), apart: true} // no cached measurement of the machine
	model, db := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "r.db")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	for folder, args := range map[string][]string{
		"tilth-rates-*": {"tune", model, "--time", "10m", "--records", db, "--quiet"},
	} {
		p := f.tilth(ctx, args...)
		p.start()
		awaitFile(ctx, t, filepath.Join(f.dir, folder, "*")) // the slowest part has started
		if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		p.mustEndInterrupted()
	}
}

// awaitFile waits until a file matches a pattern.
func awaitFile(ctx context.Context, t *testing.T, pattern string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("there is no %s", pattern)
		}
	}
}

// TestJobsOfKilledProcessesAreClosed kills a tuning process and tunes again with the same records file. The open job
// must not resume. Its logged trials are known, and only the three fastest are remeasured.
func TestJobsOfKilledProcessesAreClosed(t *testing.T) {
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := &farmUnderTest{t: t, dir: t.TempDir()}
	model, log, db := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "log.jsonl"), filepath.Join(f.dir, "r.db")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	killed := f.tilth(ctx, "tune", model, "--tasks", "2", "--threads", "1", "--time", "10m", "--log", log, "--records", db)
	killed.start()
	awaitLines(ctx, t, log, 8)
	_ = killed.cmd.Process.Kill()
	_ = killed.cmd.Wait() // it was killed

	again := f.tilth(ctx, "tune", model, "--tasks", "2", "--threads", "1", "--trials", "12", "--records", db, "--json")
	again.mustRun()
	for _, pattern := range []string{"tilth-farm-*", "tilth/scratch/*"} {
		if left, err := filepath.Glob(filepath.Join(f.dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("the killed process's %v are still there, %v", left, err)
		}
	}
	var summary progress.Summary
	if err := json.Unmarshal(again.stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.State != "done" || summary.Trials != 12 {
		t.Errorf("job ended %s with %d trials, want done with 12", summary.State, summary.Trials)
	}
	logged := distinctTrials(t, log)
	want := fmt.Sprintf("resumed: %d trials of an earlier run are known\n", summary.KnownTrials)
	if summary.KnownTrials < logged || !strings.Contains("\n"+again.stderr.String(), "\n"+want) {
		t.Errorf("%d trials are known, want the %d that were logged; it said\n%s", summary.KnownTrials, logged, again.stderr.String())
	}
	list := f.tilth(ctx, "records", "list", "--records", db, "--json")
	list.mustRun()
	var rows []recordRow
	if err := json.Unmarshal(list.stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	known, twice := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		known[r.Candidate] = known[r.Candidate] || r.Job != summary.Job
	}
	for _, r := range rows {
		twice[r.Candidate] = twice[r.Candidate] || r.Job == summary.Job && known[r.Candidate]
	}
	maps.DeleteFunc(twice, func(_ string, is bool) bool { return !is })
	if len(twice) > 3 {
		t.Errorf("%d candidates are measured again", len(twice))
	}
}
