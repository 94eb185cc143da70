package accuracy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/costmodel/features"
	"github.com/tilth-dev/tilth/internal/stat"
)

func TestMeasuresOfAnOrder(t *testing.T) {
	latencies := []float64{1, 2, 0, 3, 3.01, 4} // the third failed
	for _, c := range []struct {
		name             string
		scores           []float64
		pairwise, recall float64
		regret           float64
	}{
		{"the right order", []float64{9, 8, 7, 6, 5, 4}, 1, 1, 0},
		{"the wrong order", []float64{1, 2, 9, 3, 4, 5}, 0, 0, 3},
		{"all the same", []float64{0, 0, 0, 0, 0, 0}, 0.5, 1, 0},
		{"what failed first, and two close ones wrong", []float64{5, 4, 9, 2, 3, 1}, 1, 1, 0},
		{"the first two wrong", []float64{4, 5, 0, 3, 2, 1}, 8. / 9, 0, 1},
	} {
		share, pairs := Pairwise(latencies, c.scores, func(fast, slow int) bool { return latencies[slow] > 1.02*latencies[fast] })
		if pairs != 9 || math.Abs(share-c.pairwise) > 1e-12 {
			t.Errorf("%s: %v of %d pairs, not %v of 9", c.name, share, pairs, c.pairwise)
		}
		if got := Recall(latencies, c.scores, 0.05); got != c.recall {
			t.Errorf("%s: recall %v, not %v", c.name, got, c.recall)
		}
		if got := Regret(latencies, c.scores, 1); got != c.regret {
			t.Errorf("%s: regret %v, not %v", c.name, got, c.regret)
		}
	}
	if share, pairs := Pairwise([]float64{0, 0}, []float64{1, 2}, func(int, int) bool { return true }); share != 0 || pairs != 0 {
		t.Errorf("failures alone: %v of %d pairs", share, pairs)
	}
	if got := Recall([]float64{0}, []float64{1}, 0.05); got != 0 {
		t.Errorf("failures alone: recall %v", got)
	}
}

// made are tasks whose latencies follow one feature, each on its own scale.
func made(tasks, each int) []Task {
	rng := rand.New(rand.NewPCG(1, 0))
	list := make([]Task, tasks)
	for k := range list {
		list[k].Name = fmt.Sprint("task ", k)
		for range each {
			row := make([]float32, len(features.Names()))
			for f := range row {
				row[f] = rng.Float32()
			}
			latency := float64(1+k) * (0.1 + float64(row[8]))
			list[k].Samples = append(list[k].Samples, costmodel.Sample{Features: row, Task: list[k].Name, LatencySeconds: latency})
			list[k].Cycles = append(list[k].Cycles, rng.Float64())
			list[k].Intervals = append(list[k].Intervals, stat.Interval{Low: latency, High: latency})
		}
	}
	return list
}

// TestModelsRankTasksThatTheyHaveNotSeen, and a cost that says nothing is right half of the time.
func TestModelsRankTasksThatTheyHaveNotSeen(t *testing.T) {
	tasks := made(6, 80)
	learnt := Learnt{Label: "learnt", Options: costmodel.Options{Trees: 40}}
	results, err := Compare(context.Background(), tasks, []Ranker{Analytic{}, learnt}, Options{Folds: 3, Noise: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 12 {
		t.Fatalf("%d results of 6 tasks and 2 rankers", len(results))
	}
	if m := Mean(results, "learnt"); m.Pairwise < 0.95 || m.Resolved < 0.95 || m.Recall < 0.5 || m.Regret > 0.1 {
		t.Errorf("learnt: %+v", m)
	}
	if m := Mean(results, "analytic"); m.Pairwise < 0.4 || m.Pairwise > 0.6 {
		t.Errorf("random: %+v", m)
	}
	if _, err := Compare(context.Background(), tasks, nil, Options{Folds: 7}); err == nil || !strings.Contains(err.Error(), "7 folds of 6 workloads") {
		t.Errorf("too many folds: %v", err)
	}
}

func TestAPythonThatIsNotThereIsNamed(t *testing.T) {
	x := XGBoost{Label: "xgboost", Python: "/nowhere/python3", Dir: t.TempDir(), Trees: 1, Leaves: 2, Threads: 1}
	_, err := Compare(context.Background(), made(2, 3), []Ranker{x}, Options{Folds: 2})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/python3") {
		t.Errorf("%v", err)
	}
}
