package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// farmDeadline is the timeout of a farm test. It is generous, because compilers are slow on a busy machine.
const farmDeadline = 20 * time.Minute

// killAfter is the number of trials between two kills.
const killAfter = 5

// TestFarmSurvivesKills kills each process of a farm in turn while a client tunes. The job must end with every trial
// exactly once in the client's log, in the events, and in the records.
func TestFarmSurvivesKills(t *testing.T) {
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startFarm(t)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()

	budget := 60
	if testing.Short() {
		budget = 36 // the kills need most of them
	}
	log := filepath.Join(f.dir, "trials.jsonl")
	f.awaitAgents(ctx)
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0-2",
		"--trials", fmt.Sprint(budget), "--log", log, "--json")
	tune.start()

	recorded := f.recordedTrials(ctx)
	for _, victim := range []string{"tracker", "tuner", "builder", "runner"} {
		for range killAfter {
			<-recorded
		}
		t.Logf("killing the %s", victim)
		f.restart(victim)
	}
	tune.mustEnd()

	var summary progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &summary); err != nil {
		t.Fatalf("summary: %v\n%s", err, tune.stdout.String())
	}
	if summary.State != "done" || summary.Trials != budget || summary.DeadLetters != 0 {
		t.Errorf("job ended %s (%s) with %d trials and %d dead letters, want done, %d and none",
			summary.State, summary.Reason, summary.Trials, summary.DeadLetters, budget)
	}
	if n := distinctTrials(t, log); n != budget {
		t.Errorf("the log has %d distinct trials, want %d", n, budget)
	}
	list := f.tilth(ctx, "records", "list", "--tracker", f.tracker, "--json")
	list.mustRun()
	var records []recordRow
	if err := json.Unmarshal(list.stdout.Bytes(), &records); err != nil {
		t.Fatal(err)
	}
	if len(records) != budget {
		t.Errorf("the tracker has %d records, want %d", len(records), budget)
	}
}

// TestTunerUsesTheCostModelItIsGiven also checks that the tuner logs it.
func TestTunerUsesTheCostModelItIsGiven(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	given, err := filepath.Abs("../../compiler/backend/cpu/cost/x86.txt")
	if err != nil {
		t.Fatal(err)
	}
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"tuner": {"--cost-model", given}}
	f.launchAll()
	f.awaitAgents(ctx)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	const budget = 24
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "2", "--trials", fmt.Sprint(budget), "--json")
	tune.mustRun()
	var summary progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.State != "done" || summary.Trials != budget {
		t.Errorf("job ended %s (%s) with %d trials", summary.State, summary.Reason, summary.Trials)
	}
	log, err := os.ReadFile(filepath.Join(f.dir, "tuner.log"))
	if err != nil || !strings.Contains(string(log), "cost_model="+given) {
		t.Errorf("the tuner says, %v:\n%s", err, log)
	}
}

// distinctTrials counts the trials in a log and fails on duplicates.
func distinctTrials(t *testing.T, path string) int {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line progress.Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("log: %v: %s", err, lines.Text())
		}
		key := fmt.Sprintf("%s %d", line.Task, line.Trial)
		if seen[key] {
			t.Errorf("trial %s is logged twice", key)
		}
		seen[key] = true
	}
	return len(seen)
}

// farmUnderTest is a farm of a tracker and one agent of each kind, as separate processes.
type farmUnderTest struct {
	t       *testing.T
	dir     string
	tracker string
	client  *client.Client
	running map[string]*exec.Cmd
	// more holds additional arguments by service.
	more map[string][]string
	// apart disables the caches that tests share.
	apart bool
}

func startFarm(t *testing.T) *farmUnderTest {
	f := newFarmUnderTest(t)
	f.launchAll()
	return f
}

func (f *farmUnderTest) launchAll() {
	for _, service := range []string{"tracker", "tuner", "builder", "runner"} {
		f.launch(service)
	}
}

// newFarmUnderTest returns a farm without starting processes.
func newFarmUnderTest(t *testing.T) *farmUnderTest {
	// A socket's path must be short, and the test's own folder has a long name.
	dir, err := os.MkdirTemp("", "farm")
	if err != nil {
		t.Fatal(err)
	}
	f := &farmUnderTest{t: t, dir: dir, tracker: "unix:" + filepath.Join(dir, "sock")}
	f.begin()
	return f
}

// begin starts services and connects a client.
func (f *farmUnderTest) begin(services ...string) {
	f.running = map[string]*exec.Cmd{}
	f.t.Cleanup(f.stop)
	var err error
	if f.client, err = client.Dial(f.tracker, slog.New(slog.DiscardHandler)); err != nil {
		f.t.Fatal(err)
	}
	for _, service := range services {
		f.launch(service)
	}
}

func (f *farmUnderTest) args(service string) []string {
	if service == "tracker" {
		args := []string{"tracker", "--listen", f.tracker, "--http", "", "--data", filepath.Join(f.dir, "data")}
		return append(args, f.more[service]...)
	}
	args := []string{service, "--tracker", f.tracker, "--name", "test/" + service, "--cache", filepath.Join(f.dir, "cache")}
	if service == "runner" {
		args = append(args, "--threads", "1")
	}
	return append(args, f.more[service]...)
}

func (f *farmUnderTest) launch(service string) {
	log, err := os.OpenFile(filepath.Join(f.dir, service+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command("tilth", f.args(service)...)
	c.Env = f.env()
	c.Stderr = log
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.running[service] = c
}

// env isolates the farm's host lock and files, except for the caches that all tests share.
func (f *farmUnderTest) env() []string {
	for _, cache := range []string{"cache", "tilth"} { // of agents and clients
		if f.apart {
			break
		}
		if err := toolchaintest.ShareCaches(filepath.Join(f.dir, cache)); err != nil {
			f.t.Fatal(err)
		}
	}
	return append(os.Environ(), "TMPDIR="+f.dir, "XDG_DATA_HOME="+f.dir, "XDG_CACHE_HOME="+f.dir)
}

func (f *farmUnderTest) kill(service string) {
	c := f.running[service]
	_ = c.Process.Kill()
	_ = c.Wait() // it was killed
	delete(f.running, service)
}

func (f *farmUnderTest) restart(service string) {
	f.kill(service)
	f.launch(service)
}

func (f *farmUnderTest) stop() {
	for service := range f.running {
		f.kill(service)
	}
	f.client.Close()
	if f.t.Failed() {
		f.tellLogs()
	}
	os.RemoveAll(f.dir)
}

func (f *farmUnderTest) tellLogs() {
	for _, service := range services {
		log, _ := os.ReadFile(filepath.Join(f.dir, service+".log"))
		f.t.Logf("log of the %s:\n%s", service, log)
	}
}

// awaitAgents waits until the tracker serves and all agents have joined.
func (f *farmUnderTest) awaitAgents(ctx context.Context) { f.await(ctx, 3) }

// awaitTracker waits until the tracker serves.
func (f *farmUnderTest) awaitTracker(ctx context.Context) { f.await(ctx, 0) }

func (f *farmUnderTest) await(ctx context.Context, n int) {
	f.until(ctx, "agents have not joined", func() bool {
		agents, err := f.client.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_UNSPECIFIED)
		return err == nil && len(agents) == n
	})
}

// until waits until so returns true. When ctx ends, it fails the test with the message wrong.
func (f *farmUnderTest) until(ctx context.Context, wrong string, so func() bool) {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatal(wrong)
		}
	}
}

// recordedTrials returns a channel that receives for every trial of the farm's only job and is closed when the job
// ends.
func (f *farmUnderTest) recordedTrials(ctx context.Context) <-chan struct{} {
	recorded := make(chan struct{})
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	f.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		defer close(recorded)
		id := f.awaitJob(ctx)
		_ = f.client.Watch(ctx, &tilthv1.WatchJobRequest{JobId: id}, func(e *tilthv1.JobEvent) error {
			if e.GetTrial() == nil {
				return nil
			}
			select {
			case recorded <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, nil)
	}()
	return recorded
}

func (f *farmUnderTest) awaitJob(ctx context.Context) string {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if jobs, _, err := f.client.ListJobs(ctx, client.JobFilter{Limit: 1}); err == nil && len(jobs) > 0 {
			return jobs[0].GetId()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return ""
}
