package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/npz"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// compiled compiles a small model for one thread.
func (f *farmUnderTest) compiled(ctx context.Context, name string) string {
	f.t.Helper()
	model, pkg := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, name)
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.tilth(ctx, "compile", model, "--threads", "1", "-o", pkg).mustRun()
	return pkg
}

// TestPackageRunsOnADeviceAsItDoesHere compares outputs and reports with a local run.
func TestPackageRunsOnADeviceAsItDoesHere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	pkg := f.compiled(ctx, "mlp.tar")
	f.awaitDevice(ctx)
	here, there := filepath.Join(f.dir, "here.npz"), filepath.Join(f.dir, "there.npz")
	f.tilth(ctx, "run", pkg, "--outputs", here).mustRun()
	run := f.tilth(ctx, "run", pkg, "--outputs", there, "--tracker", f.tracker, "--device", "test/runner",
		"--print-time", "--profile", "--repeat", "5", "--json")
	run.mustRun()
	var result runResult
	if err := json.Unmarshal(run.stdout.Bytes(), &result); err != nil {
		t.Fatalf("%v: %s", err, run.stdout.String())
	}
	if result.Device != "test/runner" || result.Time == nil || result.Time.Median <= 0 || result.Time.Repeat != 5 ||
		result.Profile == nil || len(result.Profile.Calls) == 0 || len(result.Outputs) == 0 {
		t.Errorf("the result is %s", run.stdout.String())
	}
	want, err := npz.ReadFile(here)
	if err != nil {
		t.Fatal(err)
	}
	got, err := npz.ReadFile(there)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 || len(got) != len(want) {
		t.Errorf("%d outputs came back, want %d", len(got), len(want))
	}
	for name, a := range want {
		if got[name] == nil || !bytes.Equal(got[name].Data, a.Data) {
			t.Errorf("output %s differs", name)
		}
	}
	// Outputs may be inputs of another run. Incompatible inputs fail the job with the user's file name.
	wrong := f.tilth(ctx, "run", pkg, "--inputs", here, "--tracker", f.tracker)
	if err := wrong.cmd.Run(); err == nil || !strings.Contains(wrong.stderr.String(), "has no input") {
		t.Errorf("with wrong inputs: %v\n%s", err, wrong.stderr.String())
	}
	compare := f.tilth(ctx, "compare", pkg, pkg, "--tracker", f.tracker, "--rounds", "3", "--json")
	compare.mustRun()
	var rows []compareRow
	if err := json.Unmarshal(compare.stdout.Bytes(), &rows); err != nil || len(rows) != 2 || rows[1].MedianSeconds <= 0 || rows[1].Ratio <= 0 {
		t.Errorf("%v: %s", err, compare.stdout.String())
	}
}

// TestInterruptedRunIsCancelledOnTheFarm interrupts runs that wait for a device and that have one.
func TestInterruptedRunIsCancelledOnTheFarm(t *testing.T) {
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	pkg := f.compiled(ctx, "mlp.tar")
	f.awaitDevice(ctx)
	begin := func(state tilthv1.JobState) (run *process, id string) {
		run = f.tilth(ctx, "run", pkg, "--tracker", f.tracker, "--print-time", "--repeat", "10000", "--number", "100000")
		run.start()
		return run, f.awaitState(ctx, run, state)
	}
	interrupt := func(run *process, id string) {
		t.Helper()
		if err := run.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := run.cmd.Wait(); err == nil || !strings.Contains(run.stderr.String(), "was cancelled") {
			t.Errorf("interrupted: %v\n%s", err, run.stderr.String())
		}
		if job, err := f.client.Job(ctx, id); err != nil || job.GetState() != tilthv1.JobState_JOB_STATE_CANCELLED {
			t.Errorf("interrupted, the job is %v (%v)", job.GetState(), err)
		}
	}
	first, firstID := begin(tilthv1.JobState_JOB_STATE_RUNNING)
	second, secondID := begin(tilthv1.JobState_JOB_STATE_QUEUED) // queued after the first
	interrupt(second, secondID)
	interrupt(first, firstID)
	// The device must be free again.
	f.tilth(ctx, "run", pkg, "--tracker", f.tracker).mustRun()
}

// TestRunEndsWithItsClient loses clients in three ways. The device must be free for another run, while the first
// would last for minutes.
func TestRunEndsWithItsClient(t *testing.T) {
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	pkg := f.compiled(ctx, "mlp.tar")
	f.awaitDevice(ctx)
	// Without a handler, processes would ignore SIGHUP if the tests do, as under nohup.
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUps) })
	kill := func(s syscall.Signal) func(*process, *silentLine) {
		return func(run *process, _ *silentLine) {
			if err := run.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, lost := range []struct {
		name string
		how  func(*process, *silentLine)
	}{
		{"its client is killed", kill(syscall.SIGKILL)},
		{"its client's terminal is closed", kill(syscall.SIGHUP)},
		{"its client's line is cut", func(_ *process, line *silentLine) { line.cut.Store(true) }},
	} {
		line := newSilentLine(t, strings.TrimPrefix(f.tracker, "unix:"))
		run := f.tilth(ctx, "bench", pkg, pkg, "--tracker", line.Addr().String(), "--rounds", "10000", "--number", "100000")
		if lost.name == "its client's terminal is closed" {
			run = f.tilth(ctx, "run", pkg, "--tracker", line.Addr().String(), "--print-time", "--repeat", "10000", "--number", "100000")
		}
		run.start()
		id := f.awaitState(ctx, run, tilthv1.JobState_JOB_STATE_RUNNING)
		lost.how(run, line)
		f.tilth(ctx, "run", pkg, "--tracker", f.tracker).mustRun()
		if job, err := f.client.Job(ctx, id); err != nil || job.GetState() != tilthv1.JobState_JOB_STATE_CANCELLED || job.GetReason() != "its client is gone" {
			t.Errorf("%s: the job is %v (%q, %v)", lost.name, job.GetState(), job.GetReason(), err)
		}
		_ = run.cmd.Process.Kill()
		_ = run.cmd.Wait()
	}
}

// silentLine is a proxy that stops passing bytes when it is cut, but keeps its connections open.
type silentLine struct {
	net.Listener
	cut atomic.Bool
}

func newSilentLine(t *testing.T, socket string) *silentLine {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	line := &silentLine{Listener: lis}
	pass := func(from, to net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if !line.cut.Load() {
				_, _ = to.Write(buffer[:n])
				if err != nil {
					to.Close()
				}
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		for {
			from, err := lis.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", socket)
			if err != nil {
				from.Close()
				continue
			}
			go pass(from, to)
			go pass(to, from)
		}
	}()
	return line
}

// awaitState returns the newest job once it is in a state. It fails if run, which submitted the job, ends before.
func (f *farmUnderTest) awaitState(ctx context.Context, run *process, state tilthv1.JobState) string {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if jobs, _, err := f.client.ListJobs(ctx, client.JobFilter{Limit: 1, States: []tilthv1.JobState{state}}); err == nil && len(jobs) > 0 {
			return jobs[0].GetId()
		}
		if run.ended() {
			f.t.Fatalf("no job is %v, and the client ended: %v\n%s", state, run.cmd.Wait(), run.stderr.String())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("no job is %v", state)
		}
	}
}

// seenRunning waits until the n-th job runs, and reports false if it ended first.
func (f *farmUnderTest) seenRunning(ctx context.Context, n int) bool {
	running := false
	f.until(ctx, "the job does not begin", func() bool {
		jobs, _, err := f.client.ListJobs(ctx, client.JobFilter{Limit: n})
		if err != nil || len(jobs) < n {
			return false
		}
		running = jobs[0].GetState() == tilthv1.JobState_JOB_STATE_RUNNING
		return running || jobs[0].GetState() == tilthv1.JobState_JOB_STATE_DONE || jobs[0].GetState() == tilthv1.JobState_JOB_STATE_FAILED
	})
	return running
}

// TestRunSurvivesKills kills the tracker and the runner. The job must be done exactly once.
func TestRunSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes, and times a package for long enough to kill them")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	pkg := f.compiled(ctx, "mlp.tar")
	f.awaitDevice(ctx)
	outputs := filepath.Join(f.dir, "out.npz")
	runs := 1
	var run *process
	for repeat := 300; ; repeat *= 4 {
		run = f.tilth(ctx, "run", pkg, "--tracker", f.tracker, "--outputs", outputs, "--print-time", "--repeat", strconv.Itoa(repeat), "--number", "1000", "--json")
		run.start()
		if f.seenRunning(ctx, runs) {
			break
		}
		run.mustEnd() // it ended before it was observed
		runs++
	}
	f.restart("tracker")
	f.restart("runner")
	run.mustEnd()
	if _, err := os.Stat(outputs); err != nil {
		t.Error(err)
	}
	jobs, _, err := f.client.ListJobs(ctx, client.JobFilter{Limit: 10})
	if err != nil || len(jobs) != runs || jobs[0].GetState() != tilthv1.JobState_JOB_STATE_DONE {
		t.Errorf("the jobs are %v (%v)", jobs, err)
	}
}
