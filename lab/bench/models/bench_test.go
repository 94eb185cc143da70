package models

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/aot/profile"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/bench"
)

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	var m measurement
	// The machine is twice as slow in the last round, for both.
	m.judgeTimes([][]float64{{3, 3, 3}, {3, 3, 3}, {6, 6, 6}}, [][]float64{{2, 2, 2}, {2, 2, 2}, {4, 4, 4}})
	if m.Rounds != 3 || m.Ratio != 1.5 || m.RatioLow != 1.5 || m.RatioHigh != 1.5 || m.Seconds != 2 || m.PeerSeconds != 3 {
		t.Errorf("%+v", m)
	}
}

func TestTensorsSurviveFiles(t *testing.T) {
	dir := t.TempDir()
	tokens := array.New(array.Int64, 2)
	tokens.SetInt(1, 7)
	want := map[string]*array.Array{"x": array.FromFloat32([]float32{1, 2, 3, 4}, 2, 2), "tokens": tokens}
	spec, err := writeSpec(want, dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	if bench.WorstError(got, want) != 0 || got["tokens"].Int(1) != 7 {
		t.Errorf("got %v", got)
	}
}

// TestResultsGoOnWhereTheyEnded checks that a later run on the same kind of machine reuses earlier results.
func TestResultsGoOnWhereTheyEnded(t *testing.T) {
	folder := t.TempDir()
	row := func(model, version string, ratio float64) result {
		return result{Model: model, Threads: 1, Schedules: untunedSchedules, Version: version,
			measurement: measurement{Ratio: ratio, Seconds: 0.002, PeerSeconds: 0.002 * ratio, Flop: 1e9, Peak: aot.Peak{FlopsPerSecond: 1e12}}}
	}
	for machine, rows := range map[string][]result{
		"epyc-avx2": {row("b", "1", 0.5), row("a", "1", 2), row("b", "2", 1.5)}, "xeon-amx": {row("a", "1", 3)},
	} {
		r, err := bench.Open[result](folder, machine, resultsName)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(rows); err != nil {
			t.Fatal(err)
		}
	}
	r, err := bench.Open[result](folder, "epyc-avx2", resultsName)
	if err != nil {
		t.Fatal(err)
	}
	untuned, tuned := kind{schedules: untunedSchedules}, kind{schedules: tunedSchedules}
	if !have(r, "b", 1, "2", []kind{untuned}) || have(r, "a", 1, "2", []kind{untuned}) || have(r, "b", 1, "2", []kind{untuned, tuned}) {
		t.Error("the results of a version are not known")
	}
	var table strings.Builder
	if err := runTable([]string{"-results", folder}, &table); err != nil {
		t.Fatal(err)
	}
	first, second, ok := strings.Cut(strings.TrimSpace(table.String()), "### xeon-amx\n")
	lines := strings.Split(strings.TrimSpace(first), "\n")
	if !ok || len(lines) != 8 || lines[0] != "### epyc-avx2" || !strings.HasPrefix(lines[6], "| a | 2 | 4 | **2.00** ") ||
		!strings.Contains(lines[7], "**1.50**") || !strings.Contains(lines[7], "| 1 | 1 ms |") || !strings.Contains(second, "**3.00**") {
		t.Errorf("table:\n%s", table.String())
	}
}

func TestPackagesOfTwoKindsStandBesideOneAnother(t *testing.T) {
	row := func(model, kind, version string, seconds, ratio float64) result {
		return result{Model: model, Threads: 1, Schedules: kind, Version: version, measurement: measurement{Seconds: seconds, PeerSeconds: seconds * ratio, Ratio: ratio}}
	}
	var out strings.Builder
	besides("Fast numerics", "default", "fast")(&out, "epyc", []result{
		row("a", "default", "1", 0.004, 1), row("a", "fast", "1", 0.002, 2), row("b", "default", "1", 0.003, 1), row("b", "fast", "2", 0.001, 8),
	})
	for _, want := range []string{
		"### Fast numerics on epyc\n\n1 thread\n", "| a | 2 | 4 | **2.00** (0.00–0.00) | - | 4 | 2.00 |", "| b | 1 | 8 | **8.00** (0.00–0.00) | - | - | - |",
		"Geometric means: 4.00 × ONNX Runtime, the least 2.00; 2.00 × default.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestTwinInFloatsIsFoundByItsName(t *testing.T) {
	f, _ := formOf("quantised")
	s := &suite{form: f, dir: t.TempDir()}
	floats := f.kinds[0]
	for _, name := range []string{"m.onnx", "m_int8.onnx", "alone_int8.onnx"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := s.entries([]string{"resnet-18", filepath.Join(s.dir, "m_int8.onnx"), filepath.Join(s.dir, "alone_int8.onnx"), filepath.Join(s.dir, "m.onnx")})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []string{"resnet-18.onnx", "m.onnx", "", ""} {
		if e := entries[k]; s.has(e, floats) != (want != "") || want != "" && s.path(e, floats) != filepath.Join(s.dir, want) {
			t.Errorf("%s: its twin is %v, %s; want %s", e.path, s.has(e, floats), s.path(e, floats), want)
		}
	}
}

func TestProcessThatWaitsSettles(t *testing.T) {
	c, err := start(t.Context(), "fake", "sh", "-c", "echo ready; while read -r question; do echo '[1, 2]'; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.turn(2); err != nil || !slices.Equal(c.samples[0], []float64{1e-3, 2e-3}) {
		t.Errorf("got %v, %v", c.samples, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := start(t.Context(), "other", "echo", "hello"); err == nil || !strings.Contains(err.Error(), `start other: it said "hello" and is not ready`) {
		t.Errorf("a program that is no contender: %v", err)
	}
}

func TestKernelsAreSummedByTask(t *testing.T) {
	calls := []profile.Call{{Task: "conv", Seconds: 3, Share: 0.3, Work: profile.Work{Flop: 3e9}}, {Task: "dense", Seconds: 2.5, Share: 0.25},
		{Task: "relu", Seconds: 2.4, Share: 0.24}, {Task: "conv", Seconds: 2, Share: 0.2, Work: profile.Work{Flop: 2e9}}}
	got := busiest(calls, 2)
	if len(got) != 2 || got[0].Task != "conv" || got[0].Calls != 2 || got[0].Seconds != 5 || got[0].Flop != 5e9 || got[1].Task != "dense" {
		t.Errorf("%+v", got)
	}
	var out strings.Builder
	result{Model: "m", Threads: 1, Schedules: tunedSchedules, measurement: measurement{Seconds: 10, Ratio: 0.5, Kernels: got,
		Peak: aot.Peak{FlopsPerSecond: 4e9}}}.writeKernels(&out, 1)
	if !strings.Contains(out.String(), "| 50.0 % | 5e+03 | 2 | 1.00 | 25 % |") {
		t.Errorf("got %s", out.String())
	}
}

func TestTrialCostOfALog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "trials.jsonl")
	lines := `{"task":"a","trial":0,"latency_s":0.1,"error":"","elapsed_s":1,"build_s":0.5,"run_s":0.25}
{"task":"a","trial":1,"latency_s":null,"error":"crash","elapsed_s":2,"build_s":0.5,"run_s":0.25}
`
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := trialCost(log, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 trials (1 failed)", "build 50 %, measure 25 %, search and the rest 25 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if err := os.WriteFile(log, []byte("{}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trialCost(log, &out); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}
