package gpu

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python returns this machine's interpreter.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("there is no python3: scripts/packages.sh test installs it")
	}
	return path
}

// TestPythonWithoutAGPUIsNoPeer covers a missing PyTorch and a missing GPU. Questions still get answers.
func TestPythonWithoutAGPUIsNoPeer(t *testing.T) {
	b := &suite{options: options{python: python(t), work: t.TempDir()}}
	defer b.close()
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	if v := b.versions(t.Context()); v != "" {
		t.Fatalf("there are peers: %s", v)
	}
	for range 2 {
		if _, err := b.answer(t.Context(), question{What: "product", M: 1, K: 1, N: 1, DType: "float32"}); err == nil || strings.Contains(err.Error(), "ended") {
			t.Errorf("the error is %v", err)
		}
	}
}

// fakePyTorch returns a bench whose Python has a fake PyTorch. It logs requests to a file.
func fakePyTorch(t *testing.T) (b *suite, log string) {
	t.Helper()
	b = &suite{options: options{python: python(t), work: t.TempDir()}}
	t.Cleanup(b.close)
	dir, err := filepath.Abs("testdata/torch")
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	t.Setenv("PYTHONPATH", dir)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Setenv("FAKE_TORCH_LOG", log)
	return b, log
}

// TestAllPeersAnswer asks the questions of all steps. The fastest submission counts, as a graph if possible.
func TestAllPeersAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		graphs              string
		peer, triton, model float64
	}{
		"with graphs": {"", 0.002, 0.002, 0.002}, "without graphs": {"1", 0.004, 0.003, 0.006},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := fakePyTorch(t)
			t.Setenv("FAKE_TORCH_NO_GRAPHS", c.graphs)
			if v := b.versions(t.Context()); v != "PyTorch fake without Triton" {
				t.Fatalf("the versions are %q", v)
			}
			ask := func(q question, want float64) {
				got, err := b.answer(t.Context(), q)
				if err != nil || math.Abs(got.Seconds-want) > 1e-6 || (got.Way == "a graph") != (c.graphs == "") {
					t.Errorf("%v: %+v, want %v s: %v", q, got, want, err)
				}
			}
			for _, p := range products() {
				ask(p.contenders()[0].question, c.peer)
				ask(p.contenders()[1].question, c.triton)
			}
			for _, m := range allModels() {
				ask(m.contenders()[0].question, c.model)
			}
		})
	}
}

// TestPeersAreCompiledOnce checks that readiness requests compile, and that TF32 rounding follows the product.
func TestPeersAreCompiledOnce(t *testing.T) {
	b, log := fakePyTorch(t)
	exact, rounded := large(4096)[2], large(4096)[1]
	r := newResult()
	for _, p := range []product{exact, rounded} {
		b.prepare(t.Context(), p.contenders(), &r)
		for range 2 {
			for _, c := range p.contenders() {
				if _, err := b.answer(t.Context(), c.question); err != nil {
					t.Error(err)
				}
			}
		}
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	one := func(precision string) string {
		return `["empty"]` + strings.Repeat("\n"+`["precision", "`+precision+`"]`, 2) +
			"\n" + `["compile", null, {"max_autotune": true, "max_autotune_gemm_backends": "TRITON"}]` + "\n"
	}
	if want := one("highest") + one("high"); string(said) != want {
		t.Errorf("PyTorch was asked for\n%swant\n%s", said, want)
	}
}

// TestPeerThatEndsIsStartedAgain checks that the next question restarts it.
func TestPeerThatEndsIsStartedAgain(t *testing.T) {
	b := program(t, `read line; echo '{"seconds": 1}'`+"\n")
	b.python = b.tilth
	defer b.close()
	for k, ends := range []bool{false, true, false} {
		if _, err := b.answer(t.Context(), question{What: "product"}); (err != nil) != ends {
			t.Errorf("question %d: %v", k, err)
		}
	}
}
