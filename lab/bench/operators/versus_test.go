package operators

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibrariesAreAskedForTheSame compares the numbers of a request with those of the workload.
func TestLibrariesAreAskedForTheSame(t *testing.T) {
	list, err := operators("library,blocks", nil, []int64{1})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for _, w := range list {
		asked[w.name+" "+w.shape] = w.question
	}
	for of, want := range map[string]string{
		"Convolution int8 56, 56, 128, 128, 3, 2, 1":    "convolution int8 1 56 56 128 128 3 2 1 1 1",
		"Grouped bf16 28, 28, 104, 104, 3, 1, 1, 1, 13": "convolution bf16 1 28 28 104 104 3 1 1 1 13",
		"Depthwise f32 28, 28, 240, 5, 1, 2":            "convolution f32 1 28 28 240 240 5 1 2 1 240",
		"Product bf16 197, 3072, 768":                   "product bf16 197 3072 768",
		"Product q4 1, 4096, 14336":                     "product q4_K 1 4096 14336",
		"Product q8 1, 11008, 4096":                     "product q8_0 1 11008 4096",
	} {
		if asked[of] != want {
			t.Errorf("%s: %q, want %q", of, asked[of], want)
		}
	}
	if len(list) < 180 {
		t.Errorf("only %d", len(list))
	}
}

// TestWorkloadTakesTurnsWithTheLibrariesThatHaveIt uses programs that answer like libraries.
func TestWorkloadTakesTurnsWithTheLibrariesThatHaveIt(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b, err := newSuite(t.Context(), options{dir: t.TempDir()}, 1, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fast := player(t, "fast", `case $verb in prepare) echo "ready asm" ;; time) echo "samples 1e-9 1e-9 1e-9" ;; esac`)
	other := player(t, "other", `echo "unsupported no such operator"`)
	b.peers = []peer{other, fast}
	defer func() {
		if err := closeAll(b.peers); err != nil {
			t.Error(err)
		}
	}()
	list, err := operators("library", []string{"Product int8"}, []int64{1})
	if err != nil {
		t.Fatal(err)
	}
	task, err := b.build(t.Context(), list[len(list)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := b.time(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	against, err := b.compare(t.Context(), task)
	if err != nil || len(against) != 1 {
		t.Fatalf("%+v, %v", against, err)
	}
	if a := against[0]; a.Library != "fast" || a.Implementation != "asm" || a.Seconds != 1e-9 || a.OurSeconds <= 0 || a.Ratio <= 0 || a.Ratio >= 1 {
		t.Errorf("%+v", a)
	}
}

func player(t *testing.T, name, answers string) peer {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	script := "#!/bin/sh\necho peer " + name + "\nwhile read -r verb rest; do " + answers + "; done\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := startPeer(t.Context(), 1, path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTableSumsUpEachLibrary(t *testing.T) {
	one := row{Operator: "Product int8", Shape: "1, 2, 3", Threads: 1, DefaultSeconds: 1, Version: "v1", Against: []against{{Library: "oneDNN", Seconds: 2, Ratio: 2, Low: 1.9, High: 2.1}}}
	two, alone := one, one
	two.Shape, two.Against = "4, 5, 6", []against{{Library: "oneDNN", Seconds: 0.5, Ratio: 0.5, Low: 0.4, High: 0.6}}
	alone.Shape, alone.Against = "7, 8, 9", nil
	var out strings.Builder
	writeTable(&out, "epyc", []row{one, two, alone})
	for _, want := range []string{
		"| of limit | oneDNN × | tree |\n|---|--:|--:|--:|--:|---|--:|--:|--:|--:|---|\n",
		"| 1.00 s | - | - | 2.00 s, **2.00** (1.90–2.10) | v1 |\n", "| - | v1 |\n",
		"| Product int8 | oneDNN | 2 | 1.00 | 0.50 | 4, 5, 6 |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "reach") {
		t.Error("rows without a limit are counted as far from it")
	}
}
