package gpu

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/lab/testkit/fakedriver"
)

// TestMain lets this binary act as the compiler whose kernels the fake driver runs.
func TestMain(m *testing.M) {
	if os.Getenv(fakedriver.CompilerVariable) != "" {
		os.Exit(fakedriver.Compiler())
	}
	os.Exit(m.Run())
}

// script writes an executable script.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

const (
	// withPeers and withoutPeers emulate Python with and without PyTorch and a GPU.
	withPeers    = `while read line; do echo 'a library says hello'; echo '{"seconds": 0.001, "ready": true, "versions": "PyTorch 2"}'; done` + "\n"
	withoutPeers = `while read line; do echo '{"missing": "No module named torch"}'; done` + "\n"
)

// fakeMachine returns a machine with the program, a GPU with a fake driver, and a Python with made-up answers.
func fakeMachine(t *testing.T) options {
	t.Helper()
	dir := t.TempDir()
	tilth, lab := filepath.Join(dir, "tilth"), filepath.Join(dir, "lab")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", dir, "../../cmd/tilth", "../../lab").CombinedOutput(); err != nil {
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
	script(t, filepath.Join(dir, "python3"), withPeers)
	for name, value := range map[string]string{
		"PATH": dir + ":" + os.Getenv("PATH"), cuda.DriverVariable: driver.Library(), toolchain.Variable: filepath.Join(dir, "clang"),
		"XDG_DATA_HOME": filepath.Join(dir, "data"), "XDG_CACHE_HOME": filepath.Join(dir, "cache"),
	} {
		t.Setenv(name, value)
	}
	return options{tilth: tilth, lab: lab, python: filepath.Join(dir, "python3"), version: "v1", out: dir, work: dir, sandbox: "off", limit: time.Hour}
}

// TestOnAFakeCard runs the smallest step of each kind in sequence on one machine.
func TestOnAFakeCard(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds the program and tunes with it on a fake card")
	}
	o := fakeMachine(t)
	t.Run("steps are done once", o.stepsAreDoneOnce)
	t.Run("a product is compared in turns", o.aProductIsCompared)
	t.Run("rows without a peer are done again", o.rowsWithoutAPeer)
	t.Run("a cost model is learnt", o.aModelIsLearnt)
}

// stepsAreDoneOnce checks that results are kept, and that another version repeats the steps.
func (o options) stepsAreDoneOnce(t *testing.T) {
	cases := filepath.Join(o.work, "cases")
	if err := os.Mkdir(cases, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/share/libonnx-testdata/data/node/test_relu", filepath.Join(cases, "test_relu")); err != nil {
		t.Fatal(err)
	}
	once := func(version, only string) []result {
		if err := Main(t.Context(), []string{"-tilth", o.tilth, "-python", o.python, "-version", version, "-out", o.out, "-work", o.work,
			"-cases", cases, "-kernels", "../../examples/cublaslt-product", "-sandbox", "off", "-only", only}); err != nil {
			t.Fatal(err)
		}
		l, err := openLedger(o.out)
		if err != nil {
			t.Fatal(err)
		}
		return l.rows
	}
	rows := once("v1", "machine,sandbox,memory")
	if len(rows) != 3 || rows[0].Card != "Fake GPU, driver 580.1" || rows[0].Notes["peers"] != "PyTorch 2" || rows[1].Notes["mode"] != "off" {
		t.Fatalf("the rows are %v", rows)
	}
	for _, name := range []string{"load_s", "first_s", copyRate, "matrices_bf16_tflops"} {
		if rows[0].Values[name] <= 0 {
			t.Errorf("%s is %v", name, rows[0].Values[name])
		}
	}
	if len(once("v1", "machine,sandbox,memory")) != 3 || len(once("v2", "memory")) != 4 {
		t.Error("steps were done again, or not")
	}
	if last := once("v2", libraryStep)[4]; last.Error != "" || !strings.Contains(last.Undone, "no cuBLASLt: ") || !strings.Contains(last.Undone, "is not installed") {
		t.Errorf("without the library, its step says %v", last)
	}
}

// small returns a comparison that takes little time on a fake card.
func (b *suite) small(t *testing.T, p product) comparison {
	t.Helper()
	model := b.path("small.onnx")
	if err := os.WriteFile(model, p.encoded(), 0o600); err != nil {
		t.Fatal(err)
	}
	return comparison{model, []string{"--numerics", p.numerics}, 4, time.Minute, p.contenders()}
}

// smallStep is the name of the tests' comparisons.
const smallStep = "product small"

func newResult() result {
	return result{Step: smallStep, Version: "v1", Card: "Fake GPU", Values: map[string]float64{}, Notes: map[string]string{}}
}

// aProductIsCompared compares a product, tuned and untuned, with peers.
func (o options) aProductIsCompared(t *testing.T) {
	b := &suite{options: o, card: "Fake GPU", ledger: &ledger{path: filepath.Join(o.out, resultsName)}}
	defer b.close()
	r := newResult()
	if err := b.compared(t.Context(), b.small(t, product{16, 32, 16, array.Float32, "fast"}), &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"trials", "trial_s", "tuned_s", "untuned_s", "peer_s", "triton_s", "of_peer", "of_triton", "of_untuned",
		"untuned_of_peer", "load_s", "first_s", "tasks", "tuned_tasks"} {
		if r.Values[name] <= 0 {
			t.Errorf("%s is %v", name, r.Values[name])
		}
	}
	if !strings.HasPrefix(r.Notes["slowest"], "matmul ") || r.Notes[matricesNote] == "" || r.Values["launches"] < 1 || r.Undone != "" {
		t.Errorf("it is %v", r)
	}
}

// rowsWithoutAPeer checks that such rows are marked, and repeated once a peer is available. The repetition uses the
// records of another machine instead of searching again.
func (o options) rowsWithoutAPeer(t *testing.T) {
	script(t, o.python, withoutPeers)
	b := &suite{options: o, card: "Fake GPU", ledger: &ledger{path: filepath.Join(t.TempDir(), resultsName)}}
	defer b.close()
	first := newResult()
	p := product{16, 16, 16, array.Float32, "strict"}
	if err := b.compared(t.Context(), b.small(t, p), &first); err != nil {
		t.Fatal(err)
	}
	if first.Undone != "no triton: No module named torch" || first.Values["tuned_s"] <= 0 || first.Values["of_peer"] != 0 {
		t.Fatalf("without a peer it is %v", first)
	}
	failed := first
	failed.Error = "took too long" // after the search, which is not repeated
	for _, r := range []result{first, failed} {
		if err := b.ledger.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if !b.done(t.Context(), smallStep) {
		t.Error("a row is undone although there is no peer")
	}
	b.close()
	b.peers, b.work = nil, t.TempDir()
	script(t, o.python, withPeers)
	if b.done(t.Context(), smallStep) {
		t.Error("a row is done although there is a peer now")
	}
	if err := b.importRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, again := b.small(t, p), newResult()
	c.trials = 0 // a search would fail
	if err := b.compared(t.Context(), c, &again); err != nil {
		t.Fatal(err)
	}
	if again.Undone != "" || again.Values["of_peer"] <= 0 || again.Values["trials"] != first.Values["trials"] {
		t.Errorf("with a peer it is %v", again)
	}
}

// aModelIsLearnt trains on the records of the other tests, which belong to this card.
func (o options) aModelIsLearnt(t *testing.T) {
	b := &suite{options: o}
	if err := b.learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := costmodel.ReadFile(filepath.Join(o.out, modelName), registry.FeatureSets()...); err != nil {
		t.Error(err)
	}
}
