package gpu

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/bench"
)

// values returns the figures of a comparison.
func values(peer, untuned, tuned float64) map[string]float64 {
	r := result{Values: map[string]float64{"peer_s": peer, "untuned_s": untuned, "tuned_s": tuned, "trials": 200, "tasks": 1, "tuned_tasks": 1,
		"trial_s": 0.02, "first_s": 0.1, "load_s": 0.3, "tuned_gbps": 3600}}
	r.ratio("of_peer", "peer_s", "tuned_s")
	r.ratio("of_untuned", "untuned_s", "tuned_s")
	r.ratio("untuned_of_peer", "peer_s", "untuned_s")
	return r.Values
}

// pages returns results of a card by step.
func pages(rows map[string]map[string]float64) page {
	p := page{&ledger{}, "a card"}
	for step, v := range rows {
		p.rows = append(p.rows, result{Step: step, Card: "a card", Version: "v1", Values: v})
	}
	return p
}

// line returns the row of a goal without its last columns.
func line(t *testing.T, text, what string) string {
	t.Helper()
	for l := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(l, "| "+what+" | "); ok {
			return strings.TrimSuffix(rest, " |\n")
		}
	}
	t.Fatalf("there is no line of %q in\n%s", what, text)
	return ""
}

// TestLimitsAreJudged uses the geometric mean and the worst figure. A goal is missed as soon as one figure is beyond
// it, and met only if everything was measured.
func TestLimitsAreJudged(t *testing.T) {
	bf16, fp32, few := large(4096)[0].step(), large(4096)[2].step(), skinny(1, 4096, 14336).step()
	p := pages(map[string]map[string]float64{
		"machine": {copyRate: 4000}, bf16: values(1, 4, 1), large(8192)[0].step(): values(0.9, 1, 1), fp32: values(0.99, 2, 1), few: values(1.2, 2, 1),
	})
	var out strings.Builder
	p.writeLimits(&out)
	for what, want := range map[string]string{
		"4096³ and 8192³ in bfloat16, × cuBLAS": "≥ 0.90 | 2 of 2 | 0.95 | 0.90 | yes",
		"4096³ and 8192³ in TF32, × cuBLAS":     "≥ 0.90 | 0 of 2 |  |  | not measured",
		"4096³ and 8192³ in float32, × cuBLAS":  "≥ 1.00 | 1 of 2 | 0.99 | 0.99 | **no**",
		"skinny products, of the memory's rate": "≥ 80 % | 1 of 6 | 90 % | 90 % | so far",
		"a trial, all included":                 "geomean ≤ 30.0 ms | 4 of 34 | 20.0 ms | 20.0 ms | so far",
		"200 trials a task, × untuned":          "geomean ≥ 1.50 | 3 of 10 | 2.52 | 2.00 | so far",
	} {
		if got := line(t, out.String(), what); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

// TestModelsHaveTwoLimits covers the geometric mean and the individual figures.
func TestModelsHaveTwoLimits(t *testing.T) {
	for name, c := range map[string]struct {
		least float64
		want  string
	}{
		"both kept":         {1, "20 of 20 | 1.47 | 1.00 | yes"},
		"one is behind":     {0.8, "20 of 20 | 1.45 | 0.80 | **no**"},
		"the mean is small": {0.0001, "20 of 20 | 0.93 | 0.00 | **no**"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := map[string]map[string]float64{}
			for _, step := range modelNames() {
				rows[step] = values(1.5, 2, 1)
			}
			rows[modelNames()[0]] = values(c.least, 2, 1)
			var out strings.Builder
			pages(rows).writeLimits(&out)
			if got := line(t, out.String(), "models, × torch.compile"); got != "geomean ≥ 1.20, none < 0.90 | "+c.want {
				t.Error(got)
			}
		})
	}
}

// TestRowsWithAPeerStay until newer ones with a peer exist. Missing peers and failures are reported.
func TestRowsWithAPeerStay(t *testing.T) {
	p, m := large(4096)[0].step(), models("fast", 1)[0].step()
	l := &ledger{rows: []result{
		{Step: p, Card: "a card", Version: "v1", Values: values(1, 2, 1)},
		{Step: p, Card: "a card", Version: "v2", Values: values(0, 3, 1), Undone: "no peer: no PyTorch"},
		{Step: m, Card: "a card", Version: "v2", Values: values(0, 3, 1), Undone: "no peer: no PyTorch"},
		{Step: "sandbox", Card: "a card", Version: "v2", Error: "no |\nway"},
		{Step: caseName(0, "default"), Card: "a card", Version: "v2", Values: map[string]float64{"pass": 5}, Notes: map[string]string{"first failure": "a: b"}},
	}}
	text := l.table()
	for _, want := range []string{
		"| 4096 × 4096 × 4096 | bf16 | strict | - | 2.00 s | 1.00 s | 1.00 s | - | **1.00** | - | 2.00 |",
		"| resnet-50 | 1 | fast | 3.00 s | 1.00 s | - | **-** | - | 3.00 | 1 of 1 | 300 ms | 100 ms | 200 | 20.0 ms | v2 |",
		"| " + m + " | not compared: no peer: no PyTorch | v2 |\n", "| sandbox | **failed**: no \\| way | v2 |\n",
		"| cases 1 of 5 default | pass 5, first failure: a: b | v2 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

func TestTableReadsResultFolder(t *testing.T) {
	dir := t.TempDir()
	row := result{Step: machineStep, Card: "a card", Version: "v1", Values: map[string]float64{fmaRate: 50}}
	if err := bench.Append(filepath.Join(dir, resultsName), []result{row}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := runTable([]string{"-out", dir}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| machine | fma_tflops 50 | v1 |\n") {
		t.Error(out.String())
	}
}
