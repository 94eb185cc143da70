package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func TestWorstIsRelativeToTheLargestValue(t *testing.T) {
	zeros := array.New(array.Float32, 2)
	want := array.FromFloat32([]float32{1, -4}, 2)
	cases := map[string]struct {
		got, want *array.Array
		worst     float64
	}{
		"equal":        {want, want, 0},
		"off":          {array.FromFloat32([]float32{1.5, -4}, 2), want, 0.125},
		"all zeros":    {zeros, zeros, 0},
		"not zero":     {want, zeros, math.Inf(1)},
		"other length": {array.New(array.Float32, 3), want, math.Inf(1)},
		"missing":      {nil, want, math.Inf(1)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]*array.Array{"y": c.got}
			if w := worst(got, map[string]*array.Array{"y": c.want}); w != c.worst {
				t.Errorf("got %g, want %g", w, c.worst)
			}
		})
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
	if _, err := decodeLog("trials.jsonl", strings.NewReader("{}\nnonsense\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}
