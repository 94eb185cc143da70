package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// seen is a writer that closes found once a text was written to it.
type seen struct {
	text  string
	all   strings.Builder
	once  sync.Once
	found chan struct{}
}

func (s *seen) Write(b []byte) (int, error) {
	s.all.Write(b)
	if strings.Contains(s.all.String(), s.text) {
		s.once.Do(func() { close(s.found) })
	}
	return len(b), nil
}

// startUntil starts the process and waits until its standard error contains a text.
func (p *process) startUntil(ctx context.Context, text string) {
	p.t.Helper()
	s := &seen{text: text, found: make(chan struct{})}
	p.cmd.Stderr = io.MultiWriter(&p.stderr, s)
	p.start()
	select {
	case <-s.found:
	case <-ctx.Done():
		p.t.Fatalf("standard error never has %q", text)
	}
}

// newTuning returns a farm's folder with a model, and the start of a command that tunes it. A first run has measured
// the machine's limits.
func newTuning(ctx context.Context, t *testing.T) (f *farmUnderTest, tune []string) {
	f = &farmUnderTest{t: t, dir: t.TempDir()}
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	tune = []string{"tune", model, "--threads", "1", "--records", filepath.Join(f.dir, "r.db"), "--json"}
	f.tilth(ctx, append(tune, "--trials", "1")...).mustRun()
	return f, tune
}

// TestWaitingForTheMachineIsBesideTheBudgetOfTime checks that the holder of the machine's lock is named, too.
func TestWaitingForTheMachineIsBesideTheBudgetOfTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f, tune := newTuning(ctx, t)
	lock, err := hostlock.New(filepath.Join(f.dir, fmt.Sprintf("tilth-%d", os.Getuid())))
	if err != nil {
		t.Fatal(err)
	}
	release, err := lock.Time(ctx)
	if err != nil {
		t.Fatal(err)
	}
	holder := fmt.Sprintf("process %d (", os.Getpid())
	f.tilth(ctx, append(tune, "--time", "1s", "--no-wait")...).mustFail("the machine is in use by " + holder)
	pkg := filepath.Join(f.dir, "mlp.tar")
	f.tilth(ctx, "compile", filepath.Join(f.dir, "mlp.onnx"), "--threads", "1", "--untuned", "-o", pkg).mustRun()
	for _, command := range [][]string{
		{"run", pkg, "--print-time"}, {"run", pkg, "--profile"}, {"compare", pkg, pkg}, {"doctor"},
		{"compile", filepath.Join(f.dir, "mlp.onnx"), "--threads", "1", "--confirm", "--records", filepath.Join(f.dir, "r.db"), "-o", pkg},
		{"kernels", "check", "../../examples/own-kernel", "--model", filepath.Join(f.dir, "mlp.onnx"), "--threads", "1"},
	} {
		f.tilth(ctx, append(command, "--no-wait")...).mustFail("the machine is in use by " + holder)
	}
	waiting := f.tilth(ctx, append(tune, "--time", "1s")...)
	waiting.startUntil(ctx, "waits for its machine, held by "+holder)
	release()
	waiting.mustEnd()
	var s progress.Summary
	if err := json.Unmarshal(waiting.stdout.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if w := s.MachineWait; w == nil || w.Seconds <= 0 || len(w.Holders) != 1 || w.Holders[0].PID != os.Getpid() || w.Holders[0].Since.IsZero() || !strings.Contains(w.Message, holder) {
		t.Errorf("it waited for %+v", w)
	}
	if release, err = lock.Time(ctx); err != nil {
		t.Fatal(err)
	}
	compare := f.tilth(ctx, "compare", pkg, pkg, "--rounds", "1")
	compare.startUntil(ctx, holder)
	release()
	compare.mustEnd()
}

func TestTuneCommandsTakeTurnsOnARecordsFile(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f, tune := newTuning(ctx, t)
	db, err := bolt.Open(filepath.Join(f.dir, "r.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inUse := fmt.Sprintf(" is in use by process %d (", os.Getpid())
	f.tilth(ctx, append(tune, "--trials", "2", "--no-wait")...).mustFail("in use by another process")
	interrupted := f.tilth(ctx, append(tune, "--trials", "2")...)
	interrupted.startUntil(ctx, inUse)
	if err := interrupted.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	interrupted.mustEndInterrupted()
	next := f.tilth(ctx, append(tune, "--trials", "2")...)
	next.startUntil(ctx, inUse)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	next.mustEnd()
}
