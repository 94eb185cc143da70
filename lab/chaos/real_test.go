package chaos

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/target"
	compilers "github.com/tilth-dev/tilth/compiler/toolchain"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

var real = flag.Int("real", 1, "how many rounds with agents that do their work")

// realTrials is the number of trials of each job in a round with real agents.
const realTrials = 24

// TestPromisesHoldOfRealAgents injects faults into a farm with real agents: they search, compile and measure, over
// TLS and with tokens.
func TestPromisesHoldOfRealAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds the program and has a farm of it tune under faults")
	}
	t.Parallel() // mostly waits
	if *real == 0 {
		return
	}
	binary, tilth := buildProgram(t), filepath.Join(t.TempDir(), "tilth")
	if out, err := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-ldflags=-w", "-o", tilth}, raceFlags, []string{"github.com/tilth-dev/tilth/cmd/tilth"})...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := newCampaign(t, "real")
	spec := tuneModel(t.Context(), t)
	for n := range uint64(*real) {
		c.run(Round{Seed: *seed + n, Binary: binary, Points: boundaries, Tilth: tilth, Spec: spec})
	}
	c.logTotals()
}

// tuneModel returns the specifications of jobs that each tune a task of a small model on this machine.
func tuneModel(ctx context.Context, t *testing.T) func(n int) *tilthv1.JobSpec {
	t.Helper()
	m, err := modelzoo.Build("mlp", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := compilers.Find(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	tasks := jobclient.Join(jobclient.Model{Tasks: p.Tasks, Weight: 1})
	return func(n int) *tilthv1.JobSpec {
		return jobclient.NewSpec(tasks[n:n+1], jobclient.Options{
			Name: fmt.Sprint("mlp-", n), Owner: "chaos", Target: machine.WithToolchain(tc.Name), Trials: realTrials, Tuner: tuner.Best, Seed: uint64(n), Priority: 10,
		})
	}
}
