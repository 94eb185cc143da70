package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/bench/jsonlines"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/cuda/fakedriver"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// TestMain lets this binary be the compiler whose kernels the fake driver plays.
func TestMain(m *testing.M) {
	if os.Getenv(fakedriver.CompilerVariable) != "" {
		os.Exit(fakedriver.Compiler())
	}
	os.Exit(m.Run())
}

// script writes a command.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// fakeMachine has the program, a GPU whose driver is a fake, and a Python whose answers are made up.
func fakeMachine(t *testing.T) options {
	t.Helper()
	dir := t.TempDir()
	tilth := filepath.Join(dir, "tilth")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tilth, "../../cmd/tilth").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := fakedriver.Make(t.Context(), tc, on, dir)
	if err != nil {
		t.Fatal(err)
	}
	clang, err := exec.LookPath(cmp.Or(os.Getenv(toolchain.Variable), "clang-19"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.WriteCompiler(filepath.Join(dir, "clang"), clang, self); err != nil {
		t.Fatal(err)
	}
	script(t, filepath.Join(dir, "nvidia-smi"), "echo 'Fake GPU, 580.1'\n")
	script(t, filepath.Join(dir, "python3"), `while read line; do echo 'a library says hello'; echo '{"seconds": 0.001}'; done`+"\n")
	for name, value := range map[string]string{
		"PATH": dir + ":" + os.Getenv("PATH"), cuda.DriverVariable: driver.Library(), toolchain.Variable: filepath.Join(dir, "clang"),
		"XDG_DATA_HOME": filepath.Join(dir, "data"), "XDG_CACHE_HOME": filepath.Join(dir, "cache"),
	} {
		t.Setenv(name, value)
	}
	return options{tilth: tilth, python: filepath.Join(dir, "python3"), version: "v1", out: dir, work: dir, sandbox: "off", limit: time.Hour}
}

// TestStepsAreDoneOnce: the smallest of them, with results that are kept. They are done again by another version.
func TestStepsAreDoneOnce(t *testing.T) {
	o := fakeMachine(t)
	cases := filepath.Join(o.work, "cases")
	if err := os.Mkdir(cases, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/share/libonnx-testdata/data/node/test_relu", filepath.Join(cases, "test_relu")); err != nil {
		t.Fatal(err)
	}
	once := func(version string) []result {
		if err := run(t.Context(), []string{"-tilth", o.tilth, "-python", o.python, "-version", version, "-out", o.out, "-work", o.work,
			"-cases", cases, "-only", "machine,memory"}); err != nil {
			t.Fatal(err)
		}
		rows, err := jsonlines.Read[result](filepath.Join(o.out, resultsName))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := once("v1")
	if len(rows) != 2 || rows[0].Card != "Fake GPU, driver 580.1" || rows[0].Values["load_and_run_once_s"] <= 0 || rows[0].Values["copies_gbps"] <= 0 {
		t.Fatalf("the rows are %v", rows)
	}
	if len(once("v1")) != 2 || len(once("v2")) != 4 {
		t.Error("steps were done again, or not")
	}
}

// TestAProductIsComparedInTurns, tuned and untuned, with what the peer answers.
func TestAProductIsComparedInTurns(t *testing.T) {
	b := &bench{options: fakeMachine(t)}
	defer b.close()
	r := result{Values: map[string]float64{}, Notes: map[string]string{}}
	if err := b.product(t.Context(), product{16, 32, 16, array.Float32, "fast", true}, &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"trial_s", "tuned_s", "untuned_s", "peer_s", "of_peer", "tuned_tflops", "peer_tflops"} {
		if r.Values[name] <= 0 {
			t.Errorf("%s is %v", name, r.Values[name])
		}
	}
	if len(r.Notes) > 0 {
		t.Errorf("the notes are %v", r.Notes)
	}
}

// TestCasesAreCounted, and the first failure is kept.
func TestCasesAreCounted(t *testing.T) {
	counts, failure := counted([]byte(`{"case":"a","status":"pass"}
{"case":"b","status":"fail","reason":"0.5 off"}
{"case":"c","status":"fail","reason":"crash"}
`))
	if counts["pass"] != 1 || counts["fail"] != 2 || failure != "b: 0.5 off" {
		t.Errorf("%v, %q", counts, failure)
	}
}
