package toolchain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
)

// loaded builds until the compiler is in memory.
func loaded(t testing.TB, tc *Toolchain, machine *target.Target) *Toolchain {
	t.Helper()
	for range worthServers {
		mustBuild(t, tc, machine)
	}
	if len(tc.servers.idle) == 0 {
		t.Fatalf("%s is not kept in memory", tc.Path())
	}
	return tc
}

func mustBuild(t testing.TB, tc *Toolchain, machine *target.Target) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "k.so")
	if err := tc.Build(t.Context(), Build{Target: machine, Form: Kernels, Sources: source(good)}, out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestForkedCompilersProduceTheSameObject(t *testing.T) {
	tc, machine := here(t)
	want := mustBuild(t, tc, machine)
	loaded(t, tc, machine)
	if got := mustBuild(t, tc, machine); !bytes.Equal(got, want) {
		t.Error("another object than that of a compiler loaded for it")
	}
}

func TestCompilersInMemoryServeOneEach(t *testing.T) {
	tc, machine := here(t)
	loaded(t, tc, machine)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			out := filepath.Join(t.TempDir(), "k.so")
			if err := tc.Build(t.Context(), Build{Target: machine, Form: Kernels, Sources: source(good)}, out); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

// TestRunInMemoryIsGivenUp: cancelling a run kills its server, and no other.
func TestRunInMemoryIsGivenUp(t *testing.T) {
	tc, machine := here(t)
	loaded(t, tc, machine)
	server := tc.servers.idle[0]
	ctx, cancel := context.WithCancelCause(t.Context())
	began := time.AfterFunc(300*time.Millisecond, func() { cancel(errors.New("lease lost")) })
	defer began.Stop()
	err := tc.Build(ctx, Build{Target: machine, Form: Kernels, Sources: source(slow)}, filepath.Join(t.TempDir(), "x.so"))
	checkError(t, err, Infra, "lease lost")
	for _, s := range tc.servers.idle {
		if s == server {
			t.Error("a server that was killed is kept")
		}
	}
	mustBuild(t, tc, machine)
}

func TestServerThatDiedCostsNoBuild(t *testing.T) {
	tc, machine := here(t)
	loaded(t, tc, machine)
	for _, s := range tc.servers.idle {
		s.Kill()
	}
	mustBuild(t, tc, machine)
}

// TestCompilerThatCannotStayInMemoryIsLoadedForEachRun: a script that starts the compiler cannot be loaded without
// running it.
func TestCompilerThatCannotStayInMemoryIsLoadedForEachRun(t *testing.T) {
	tc, machine := here(t)
	script := filepath.Join(t.TempDir(), "clang")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+tc.Path()+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	wrapped, err := Find(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	for range worthServers + 1 {
		mustBuild(t, wrapped, machine)
	}
	if !wrapped.servers.broken || len(wrapped.servers.idle) > 0 {
		t.Error("a script is kept in memory")
	}
}
