package cruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// poolProgram compiles testdata/pool_test.c with the pool.
func poolProgram(t testing.TB, flags ...string) string {
	t.Helper()
	return program(t, PoolSources(), PoolHeaders(), "pool_test", flags...)
}

// program compiles testdata/NAME.c with other sources.
func program(t testing.TB, sources, headers []toolchain.File, name string, flags ...string) string {
	t.Helper()
	tc, machine := toolchaintest.Native(t, 0)
	text, err := os.ReadFile("testdata/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, toolchain.File{Name: name + ".c", Text: string(text)})
	file := filepath.Join(t.TempDir(), name)
	err = tc.Build(t.Context(), toolchain.Build{Target: machine, Form: toolchain.Executable, Sources: sources, Headers: headers,
		Flags: flags, Parallel: 2}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPoolRunsEveryIterationOnce(t *testing.T) {
	if out, err := exec.Command(poolProgram(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// BenchmarkRegion reports the cost of one parallel region on two threads with warm workers.
func BenchmarkRegion(b *testing.B) {
	program := poolProgram(b)
	out, err := exec.Command(program, strconv.Itoa(max(b.N, 1000))).Output()
	if err != nil {
		b.Fatal(err)
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(ns, "ns/region")
}
