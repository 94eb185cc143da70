package farm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/recordsource"
	"go.uber.org/goleak"
)

// TestMain also serves the processes that read models, which run this program.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args, ReadArgs) {
		if err := jobclient.ServeModelReader(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// ReadArgs are the arguments of such a process.
var ReadArgs = []string{"farm", "read-model"}

// config configures a local farm in temporary folders with one thread of this machine.
func config(t *testing.T) LocalConfig {
	t.Helper()
	// A separate host lock avoids waits for other tests.
	t.Setenv("TMPDIR", t.TempDir())
	machine, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := toolchaintest.ShareCaches(cache); err != nil {
		t.Fatal(err)
	}
	return LocalConfig{
		Records: filepath.Join(t.TempDir(), "tilth.db"), CacheDir: cache, Target: machine.WithToolchain(tc.Name),
		Toolchain: tc, Logger: slog.New(slog.DiscardHandler),
	}
}

func spec(t *testing.T, cfg LocalConfig, owner string, trials int) *tilthv1.JobSpec {
	t.Helper()
	m, err := modelzoo.Build("mlp", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return jobclient.NewSpec(jobclient.Join(jobclient.Model{Tasks: p.Tasks, Weight: 1})[2:3], jobclient.Options{Name: "mlp", Owner: owner, Target: cfg.Target, Trials: trials, Tuner: "ga"})
}

func TestLocalFarmTunesAndLeavesNothingRunning(t *testing.T) {
	cfg := config(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	l, err := StartLocal(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	j, err := l.Client.Submit(ctx, spec(t, cfg, LocalOwner, 3))
	if err != nil {
		t.Fatal(err)
	}
	trials := 0
	err = l.Client.Watch(ctx, &tilthv1.WatchJobRequest{JobId: j.GetId()}, func(e *tilthv1.JobEvent) error {
		if e.GetTrial() != nil {
			trials++
		}
		return nil
	}, nil)
	if err != nil || trials != 3 {
		t.Errorf("%d trials, %v; want 3", trials, err)
	}
	preferenceCounts(t, l, cfg)
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
	db, err := bolt.OpenReadOnly(cfg.Records, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	best, _, err := db.BestPage(cfg.Target.Fingerprint(), "", 2, math.MaxInt)
	if err != nil || len(best) != 1 {
		t.Errorf("%d best records, %v; want 1", len(best), err)
	}
	checkLeftBehind(t, cfg, db)
}

// checkLeftBehind checks that a local farm cleaned up. Agents used to stay in the records file forever.
func checkLeftBehind(t *testing.T, cfg LocalConfig, db *bolt.DB) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := db.Agents(func(a *tilthv1.Agent) { names = append(names, a.GetSpec().GetName()) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{host + "/local/builder", host + "/local/runner", host + "/local/tuner"}; !slices.Equal(names, want) {
		t.Errorf("agents are %v, want %v, whatever the process", names, want)
	}
	if left, err := os.ReadDir(filepath.Join(cfg.CacheDir, "scratch")); err != nil || len(left) > 0 {
		t.Errorf("the scratch folder has %v, %v", left, err)
	}
}

// leaveOpen creates a records file with an open job, as left by a killed process.
func leaveOpen(t *testing.T, cfg LocalConfig, owner string) {
	t.Helper()
	l, err := StartLocal(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Client.Submit(t.Context(), spec(t, cfg, owner, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
}

// preferenceCounts checks that a stored preference for the slowest candidate changes the best record.
func preferenceCounts(t *testing.T, l *Local, cfg LocalConfig) {
	t.Helper()
	var slowest *tilthv1.Record
	err := l.Client.ListRecords(t.Context(), cfg.Target.Fingerprint(), "", func(r *tilthv1.Record) error {
		if records.Verified(r.GetMeasurement()) && records.Cost(r.GetMeasurement()) > records.Cost(slowest.GetMeasurement()) {
			slowest = r
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Its rival is no slower than half of it, whatever was measured.
	rival := &tilthv1.Measurement{Candidate: &tilthv1.Candidate{Digest: "rival"}, LatencySeconds: slowest.GetMeasurement().GetLatencySeconds() / 1.5}
	preferred, ok := records.Prefer(slowest, rival, time.Now(), "as fast within a model")
	if !ok {
		t.Fatal("the slowest candidate cannot be preferred")
	}
	preferred.Measurement.PreferredSeconds = records.MinLatencySeconds
	if err := l.Prefer(t.Context(), []*tilthv1.Record{preferred}); err != nil {
		t.Fatal(err)
	}
	best, err := l.Client.BestRecords(t.Context(), cfg.Target.Fingerprint(), "fast", slowest.GetWorkloadDigest())
	if err != nil || len(best) != 1 || best[0].GetMeasurement().GetCandidate().GetDigest() != slowest.GetMeasurement().GetCandidate().GetDigest() {
		t.Errorf("the best is %v, %v", best, err)
	}
}

func TestLocalFarmClosesJobsOfKilledOnes(t *testing.T) {
	cfg := config(t)
	leaveOpen(t, cfg, LocalOwner)
	l, err := StartLocal(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	jobs, _, err := l.Client.ListJobs(t.Context(), client.JobFilter{})
	if err != nil || len(jobs) != 1 || jobs[0].GetState() != tilthv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("jobs are %v, %v; want one, cancelled", jobs, err)
	}
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
}

func TestLocalFarmLeavesOtherFarmsJobsAlone(t *testing.T) {
	cfg := config(t)
	leaveOpen(t, cfg, "somebody")
	_, err := StartLocal(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "of a farm is open in it: start its tracker and use --tracker, or name another file") {
		t.Errorf("error %v", err)
	}
}

func TestLocalFarmSaysWhyItDoesNotStart(t *testing.T) {
	cfg := config(t)
	l, err := StartLocal(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := StartLocal(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), records.ErrLocked.Error()) {
		t.Errorf("a second farm on the same file: %v", err)
	}
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
}

func TestRecordsCanBeReadAndImportedWhileAFarmHasThem(t *testing.T) {
	cfg := config(t)
	if err := os.Symlink("/nowhere", cfg.Records+".socket"); err != nil { // left by a killed process
		t.Fatal(err)
	}
	l, err := StartLocal(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, writable := range []bool{true, false} {
		source, err := recordsource.OpenFile(cfg.Records, writable, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if writable {
			sent := []*tilthv1.Record{storetest.Record("cpu-1", "conv", 1, 0.5)}
			next := func() (*tilthv1.Record, error) {
				if len(sent) == 0 {
					return nil, io.EOF
				}
				r := sent[0]
				sent = sent[1:]
				return r, nil
			}
			if n, _, err := source.Import(t.Context(), next); n != 1 || err != nil {
				t.Errorf("imported %d, %v", n, err)
			}
		}
		best, err := source.Best(t.Context(), "", schedule.Fast)
		if err != nil || len(best) != 1 {
			t.Errorf("read %v, %v", best, err)
		}
		source.Close()
	}
	if err := l.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(cfg.Records + ".socket"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link stays: %v", err)
	}
	source, err := recordsource.OpenFile(cfg.Records, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if best, err := source.Best(t.Context(), "", schedule.Fast); err != nil || len(best) != 1 {
		t.Errorf("afterwards %v, %v", best, err)
	}
}

func TestAgentsScratchFolderIsItsOwn(t *testing.T) {
	taken := map[string]string{}
	for _, name := range []string{"board", ".", "..", "../board", "a/b", "a_b", "a%2Fb"} {
		dir := scratchDir("cache", name)
		if filepath.Dir(dir) != filepath.Join("cache", "scratch") {
			t.Errorf("agent %q has %s, which is not below the scratch folder", name, dir)
		}
		if other, is := taken[dir]; is {
			t.Errorf("agents %q and %q share %s", name, other, dir)
		}
		taken[dir] = name
	}
}

// TestAgentsScratchFolderIsTakenOnce is a regression test: a second agent of the same name emptied the folder that
// the first one was using.
func TestAgentsScratchFolderIsTakenOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cfg := AgentConfig{Tracker: "unix:none", Name: "b", CacheDir: t.TempDir()}
	first, err := begin(cfg, tilthv1.AgentKind_AGENT_KIND_BUILDER, "builder")
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(first.scratch, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := "builder: an agent named b runs on this host already: stop it, or choose another --name"
	if _, err := begin(cfg, tilthv1.AgentKind_AGENT_KIND_BUILDER, "builder"); err == nil || err.Error() != want {
		t.Errorf("the second says %v, want %s", err, want)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the first lost its files: %v", err)
	}
	first.conn.Close()
	first.claim.Close() // as when a process is killed
	next, err := begin(cfg, tilthv1.AgentKind_AGENT_KIND_BUILDER, "builder")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.end(nil) }()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what an earlier life left is still there: %v", err)
	}
}

// TestRunnersReportTheirSandboxLayers checks that runners report each layer at joining: how it is implemented or why
// it is unavailable.
func TestRunnersReportTheirSandboxLayers(t *testing.T) {
	for mode, layers := range map[sandbox.Mode]int{"": 9, sandbox.BestEffort: 9, sandbox.Off: 0} {
		cfg := config(t)
		cfg.Sandbox = mode
		l, err := StartLocal(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		told := runnerSandbox(t, l)
		if len(told) != layers {
			t.Errorf("mode %q: %d layers, want %d: %v", mode, len(told), layers, told)
		}
		for _, layer := range told {
			if layer.GetName() == "" || (layer.GetHow() == "") == (layer.GetMissing() == "") {
				t.Errorf("mode %q: layer %v", mode, layer)
			}
		}
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// runnerSandbox returns the sandbox that the runner reported at joining.
func runnerSandbox(t *testing.T, l *Local) []*tilthv1.SandboxLayer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		agents, err := l.Client.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_RUNNER)
		if err != nil {
			t.Fatal(err)
		}
		if len(agents) > 0 {
			return agents[0].GetSpec().GetSandbox()
		}
		runtime.Gosched()
	}
}
