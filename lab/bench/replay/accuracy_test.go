package replay

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/internal/stats"
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
		share := Pairwise(latencies, c.scores, func(fast, slow int) bool { return latencies[slow] > 1.02*latencies[fast] })
		if share.Pairs != 9 || math.Abs(share.Right-c.pairwise) > 1e-12 {
			t.Errorf("%s: %+v, not %v of 9", c.name, share, c.pairwise)
		}
		if got := Recall(latencies, c.scores, 0.05); got != c.recall {
			t.Errorf("%s: recall %v, not %v", c.name, got, c.recall)
		}
		if got := Regret(latencies, c.scores, 1); got != c.regret {
			t.Errorf("%s: regret %v, not %v", c.name, got, c.regret)
		}
	}
	if got := Off([]float64{1, 2, 0, 4}, []float64{7, 6, 9, 5}); got != 1 {
		t.Errorf("times that are off by a constant are off by %v", got)
	}
	if got := Off([]float64{1, 1}, []float64{1, -1}); got != 2 {
		t.Errorf("half are twice as fast as told, half as slow: %v, want 2", got)
	}
	if share := Pairwise([]float64{0, 0}, []float64{1, 2}, func(int, int) bool { return true }); share != (Share{}) {
		t.Errorf("failures alone: %+v", share)
	}
	if got := Recall([]float64{0}, []float64{1}, 0.05); got != 0 {
		t.Errorf("failures alone: recall %v", got)
	}
}

// set is the feature set that describes the tasks.
var set = registry.FeatureSets()[0]

// made returns tasks whose latencies follow one feature, each task on its own scale.
func made(tasks, each int) []MeasuredTask {
	rng := rand.New(rand.NewPCG(1, 0))
	list := make([]MeasuredTask, tasks)
	for k := range list {
		list[k].Name, list[k].Shape = fmt.Sprint("task ", k), expr.ShapeOf(fmt.Sprint("map over ", 1<<(2*k)))
		for range each {
			row := make([]float32, len(set.Columns))
			for f := range row {
				row[f] = 1 + rng.Float32()
			}
			row[slices.Index(set.Columns, "cost_cycles")] = 8 // carries no information
			latency := float64(1+k) * (float64(row[8]) - 0.9)
			list[k].Samples = append(list[k].Samples, costmodel.Sample{Features: costfeatures.Row{Set: set, Values: row}, Task: list[k].Name, LatencySeconds: latency})
			list[k].Intervals = append(list[k].Intervals, stats.Interval{Low: latency, High: latency})
		}
	}
	return list
}

// TestModelsRankTasksThatTheyHaveNotSeen also checks that an uninformative cost is right half of the time.
func TestModelsRankTasksThatTheyHaveNotSeen(t *testing.T) {
	tasks := made(6, 80)
	learnt := Learnt{Label: "learnt", Options: costmodel.Options{Trees: 40}}
	results, err := CompareModels(context.Background(), tasks, []Ranker{Analytic{}, learnt}, CompareOptions{Folds: 3, Noise: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 12 {
		t.Fatalf("%d results of 6 tasks and 2 rankers", len(results))
	}
	if m := MeanAccuracy(results, "learnt"); m.Pairwise.Right < 0.9 || m.Resolved.Right < 0.9 || m.Recall < 0.5 || m.Regret > 0.1 {
		t.Errorf("learnt: %+v", m)
	}
	if m := MeanAccuracy(results, "analytic"); m.Pairwise.Right < 0.4 || m.Pairwise.Right > 0.6 {
		t.Errorf("random: %+v", m)
	}
	if _, err := CompareModels(context.Background(), tasks, nil, CompareOptions{Folds: 7}); err == nil || !strings.Contains(err.Error(), "7 folds of 6 kinds") {
		t.Errorf("too many folds: %v", err)
	}
}

// TestNearTasksAreInOneFold includes tasks that are only near each other through others.
func TestNearTasksAreInOneFold(t *testing.T) {
	var tasks []MeasuredTask
	for _, text := range []string{"map over 64", "map over 512", "map over 80", "map over 96", "sum over 64"} {
		tasks = append(tasks, MeasuredTask{Shape: expr.ShapeOf(text)})
	}
	numbers, n := groupsOf(tasks)
	if want := []int{0, 1, 0, 0, 2}; n != 3 || !slices.Equal(numbers, want) {
		t.Errorf("groups %v, want %v", numbers, want)
	}
}

// TestAnotherMeasurementRanksLikeAModel compares the candidates that succeeded in both measurements.
func TestAnotherMeasurementRanksLikeAModel(t *testing.T) {
	measured := func(digest string, origins string, latencies ...float64) (m MeasuredTask) {
		m.Name, m.Shape = digest, expr.ShapeOf("map over "+digest)
		for k, l := range latencies {
			m.Samples = append(m.Samples, costmodel.Sample{Task: digest, LatencySeconds: l})
			m.Intervals, m.Origins = append(m.Intervals, stats.Interval{Low: l, High: l}), append(m.Origins, origins[k:k+1])
		}
		return m
	}
	tasks := []MeasuredTask{measured("1", "abcd", 1, 2, 3, 0), measured("64", "ab", 1, 2), measured("4096", "ab", 1, 2)}
	again := []MeasuredTask{measured("64", "ab", 2, 1), measured("1", "dcba", 1, 1.5, 1, 2), {Name: "none"}}
	common := Common(tasks, again)
	if len(common) != 2 || !slices.Equal(common[0].Origins, []string{"a", "b", "c"}) {
		t.Fatalf("common: %+v", common)
	}
	results, err := CompareModels(t.Context(), common, []Ranker{Again{again}}, CompareOptions{Folds: 2, Noise: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if want := map[string]float64{"1": 1. / 3, "64": 0}[r.Task]; math.Abs(r.Pairwise.Right-want) > 1e-12 {
			t.Errorf("%s: %+v, want %v", r.Task, r.Pairwise, want)
		}
	}
	if _, err := (Again{again}).Rank(t.Context(), nil, tasks); err == nil || !strings.Contains(err.Error(), "not measured again") {
		t.Errorf("missing: %v", err)
	}
}

func TestKinds(t *testing.T) {
	for name, want := range map[string]string{
		"mul+add+relu+conv2d+relu 1x28x28x160 k1x1 -> 128": "conv2d 1x1",
		"conv2d+clip 1x28x28x192 k3x3 depthwise -> 192":    "conv2d depthwise",
		"conv2d 1x14x14x128 k3x3 -> 32":                    "conv2d",
		"dense 1x512 -> 1000":                              "dense",
		"add+mul 4x4":                                      "add",
		"":                                                 "",
	} {
		if got := Kind(name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
	results := []Accuracy{
		{Task: "dense 4", Ranker: "a", Pairwise: Share{6, 1}, Recall: 1},
		{Task: "dense 8", Ranker: "a", Pairwise: Share{3, 0.5}, Recall: 0.5},
		{Task: "dense 16", Ranker: "a"}, // all candidates are equally fast: there is no order, which is not an error
		{Task: "add 4", Ranker: "a", Pairwise: Share{1, 0}},
		{Task: "add 4", Ranker: "b", Pairwise: Share{1, 1}},
	}
	by := ByKind(results, "a")
	if len(by) != 2 || by[0].Task != "add" || by[0].Pairwise != (Share{1, 0}) {
		t.Fatalf("by kind: %+v", by)
	}
	if d := by[1]; d.Tasks != 3 || d.Pairwise != (Share{9, 0.75}) || d.Recall != 0.5 || d.Resolved != (Share{}) {
		t.Errorf("dense: %+v", d)
	}
}
