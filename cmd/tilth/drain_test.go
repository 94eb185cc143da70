package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestFarmIsStoppedGently stops each process of a farm in turn, like an administrator, while a client tunes. Each
// process must end by itself without failures, and the job must continue.
func TestFarmIsStoppedGently(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startFarm(t)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	const budget = 48
	f.awaitAgents(ctx)
	tune := f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0-2", "--trials", fmt.Sprint(budget), "--json")
	tune.start()
	recorded := f.recordedTrials(ctx)
	for _, service := range []string{"runner", "builder", "tuner", "tracker"} {
		for range killAfter {
			<-recorded
		}
		if err := f.terminate(service); err != nil {
			t.Errorf("the %s ended with %v", service, err)
		}
		if service != "tracker" {
			agent, err := f.client.Agent(ctx, "test/"+service)
			if err != nil || agent.GetState() != tilthv1.AgentState_AGENT_STATE_GONE || agent.GetFailed() != 0 {
				t.Errorf("the tracker thinks of the %s: %v, %v", service, agent, err)
			}
		}
		f.launch(service)
	}
	tune.mustEnd()
	var summary progress.Summary
	if err := json.Unmarshal(tune.stdout.Bytes(), &summary); err != nil {
		t.Fatalf("summary: %v\n%s", err, tune.stdout.String())
	}
	if summary.State != "done" || summary.Trials != budget || summary.DeadLetters != 0 {
		t.Errorf("job ended %s (%s) with %d trials and %d dead letters", summary.State, summary.Reason, summary.Trials, summary.DeadLetters)
	}
}

// terminate stops a process with SIGTERM and returns its error.
func (f *farmUnderTest) terminate(service string) error {
	c := f.running[service]
	delete(f.running, service)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.Wait()
}

// TestSecondSignalEndsAtOnce stops an agent whose tracker does not answer, so that its shutdown would take long.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startFarm(t)
	// Without a session the agent would not wait for the tracker.
	f.until(ctx, "the builder does not say that it has joined", func() bool {
		log, err := os.ReadFile(filepath.Join(f.dir, "builder.log"))
		return err == nil && bytes.Contains(log, []byte("joined the tracker"))
	})
	standStill(t, f.running["tracker"].Process)
	builder := f.running["builder"]
	delete(f.running, "builder")
	ended := make(chan error, 1)
	go func() { ended <- builder.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_ = builder.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case err := <-ended:
			if s, is := builder.ProcessState.Sys().(syscall.WaitStatus); !is || s.Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v, not by the signal", err)
			}
			return
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it does not end")
		}
	}
}

// standStill stops a child process and waits until its last thread has stopped. Other threads may answer calls for a
// while after the signal.
func standStill(t *testing.T, child *os.Process) {
	t.Helper()
	if err := child.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(child.Pid, &status, syscall.WUNTRACED, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
	if !status.Stopped() {
		t.Fatalf("process %d ended (%#x) and did not stop", child.Pid, status)
	}
}
