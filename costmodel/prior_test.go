package costmodel_test

import (
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/lab/bench/replay"
)

// ranked returns the fraction of a task's pairs that differ by 2 % and that a model ranks correctly. A nil model
// stands for the analytic cost.
func ranked(t *testing.T, m *costmodel.Model, task replay.MeasuredTask) float64 {
	t.Helper()
	var latencies, speeds []float64
	var rows []costfeatures.Row
	for _, s := range task.Samples {
		latencies, rows = append(latencies, s.LatencySeconds), append(rows, s.Features)
	}
	times, err := m.Times(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range times {
		speeds = append(speeds, -log)
	}
	return replay.Pairwise(latencies, speeds, func(fast, slow int) bool { return latencies[slow] > 1.02*latencies[fast] }).Right
}

// TestPriorRanksBetterThanTheAnalyticCost compares means over recorded sets that the prior was not trained on. If
// the prior no longer fits the features, it must be retrained. The sets are small ones of tasks that the analytic
// cost ranks badly:
//
//	go run ./lab record --tasks 'matmul,maxpool,dense 1x512' --fewest 100 --most 180 --pilot 32 -o costmodel/testdata
func TestPriorRanksBetterThanTheAnalyticCost(t *testing.T) {
	m, err := costmodel.PriorFor(&target.Target{Backend: target.Default, CPU: &target.CPU{Arch: target.X86}})
	if err != nil {
		t.Fatal(err)
	}
	sets, err := replay.ReadAll([]string{"testdata", filepath.Join("..", "lab", "bench", "replay", "testdata")})
	if err != nil {
		t.Fatal(err)
	}
	prior, analytic := 0.0, 0.0
	for _, s := range sets {
		task, err := replay.FromSet(s)
		if err != nil {
			t.Fatal(err)
		}
		prior, analytic = prior+ranked(t, m, task)/float64(len(sets)), analytic+ranked(t, nil, task)/float64(len(sets))
	}
	if prior <= analytic {
		t.Errorf("the prior ranks %.3f of pairs right, the analytic cost %.3f", prior, analytic)
	} else {
		t.Logf("the prior ranks %.3f of pairs right, the analytic cost %.3f", prior, analytic)
	}
}

func TestOtherArchitecturesHaveNoPrior(t *testing.T) {
	if m, err := costmodel.PriorFor(&target.Target{Backend: target.Default, CPU: &target.CPU{Arch: target.ARM}}); m != nil || err != nil {
		t.Errorf("arm64 has %v, %v", m, err)
	}
}
