package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Accuracy holds a ranker's accuracy on one unseen task, or the mean over several.
type Accuracy struct {
	Task string `json:"task"`
	// Tasks is the number of tasks that the mean covers.
	Tasks  int    `json:"tasks"`
	Ranker string `json:"ranker"`
	// Pairwise covers pairs that differ by more than the noise, Resolved also requires disjoint intervals, Clear
	// requires a difference of 5 %, and AllPairs covers all pairs.
	Pairwise Share `json:"pairwise"`
	Resolved Share `json:"resolved"`
	Clear    Share `json:"clear"`
	AllPairs Share `json:"all_pairs"`
	// Recall covers the fastest 5 %, Regret the 16 best scores.
	Recall float64 `json:"recall"`
	Regret float64 `json:"regret"`
	// Off is the typical factor between predicted and measured latencies, apart from a constant factor per task.
	Off float64 `json:"off"`
}

const (
	// topShare is the fraction of candidates that count as fastest.
	topShare = 0.05
	// picks is the number of candidates in a batch of a search.
	picks = 16
	// clearShare is the relative latency difference that counts as clear.
	clearShare = 0.05
)

// CompareOptions configures a comparison.
type CompareOptions struct {
	// Folds is the number of folds. Models of the others rank each fold.
	Folds int
	// Noise is the relative latency difference below which candidates count as equal.
	Noise float64
	// Seconds, if set, is called with each ranker's time for a fold, training and ranking.
	Seconds func(ranker string, seconds float64)
}

// CompareModels ranks each task with models trained on the other folds. Group k of similar tasks belongs to fold k
// modulo the number of folds. In each fold the rankers take turns.
func CompareModels(ctx context.Context, tasks []MeasuredTask, rankers []Ranker, o CompareOptions) ([]Accuracy, error) {
	numbers, n := groupsOf(tasks)
	if o.Folds < 2 || o.Folds > n {
		return nil, fmt.Errorf("%d folds of %d kinds of workloads: give at least 2, and no more folds than kinds", o.Folds, n)
	}
	var results []Accuracy
	for fold := range o.Folds {
		var train, test []MeasuredTask
		for k, t := range tasks {
			if numbers[k]%o.Folds == fold {
				test = append(test, t)
			} else {
				train = append(train, t)
			}
		}
		for _, r := range rankers {
			begin := time.Now()
			scores, err := r.Rank(ctx, train, test)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name(), err)
			}
			if o.Seconds != nil {
				o.Seconds(r.Name(), time.Since(begin).Seconds())
			}
			for k := range test {
				results = append(results, judge(&test[k], r.Name(), scores[k], o.Noise))
			}
		}
	}
	return results, nil
}

func judge(t *MeasuredTask, ranker string, scores []float64, noise float64) Accuracy {
	latencies := t.latencies()
	r := Accuracy{Task: t.Name, Tasks: 1, Ranker: ranker, Recall: Recall(latencies, scores, topShare), Regret: Regret(latencies, scores, picks), Off: Off(latencies, scores)}
	differ := func(fast, slow int) bool { return latencies[slow] > latencies[fast]*(1+noise) }
	r.Pairwise = Pairwise(latencies, scores, differ)
	r.Resolved = Pairwise(latencies, scores, func(fast, slow int) bool {
		return differ(fast, slow) && t.Intervals[fast].High < t.Intervals[slow].Low
	})
	r.Clear = Pairwise(latencies, scores, func(fast, slow int) bool { return latencies[slow] > latencies[fast]*(1+clearShare) })
	r.AllPairs = Pairwise(latencies, scores, func(fast, slow int) bool { return latencies[slow] > latencies[fast] })
	return r
}

// MeanAccuracy returns a ranker's mean over all tasks. The mean of a share covers the tasks that have such pairs.
func MeanAccuracy(results []Accuracy, ranker string) Accuracy {
	own := slices.DeleteFunc(slices.Clone(results), func(r Accuracy) bool { return r.Ranker != ranker })
	mean := Accuracy{Task: "mean", Ranker: ranker, Tasks: len(own)}
	shares := func(r *Accuracy) []*Share { return []*Share{&r.Pairwise, &r.Resolved, &r.Clear, &r.AllPairs} }
	with := make([]float64, len(shares(&mean))) // the tasks that have such pairs
	for _, r := range own {
		n := float64(len(own))
		mean.Recall, mean.Regret, mean.Off = mean.Recall+r.Recall/n, mean.Regret+r.Regret/n, mean.Off+r.Off/n
		for k, s := range shares(&r) {
			if m := shares(&mean)[k]; s.Pairs > 0 {
				m.Pairs, m.Right = m.Pairs+s.Pairs, m.Right+s.Right
				with[k]++
			}
		}
	}
	for k, m := range shares(&mean) {
		m.Right /= max(1, with[k])
	}
	return mean
}

// heavy lists the operators that determine the kind of a fused task.
var heavy = []string{"conv2d", "conv3d", "convtranspose", "matmul", "dense", "attention", "maxpool", "avgpool", "globalavgpool", "lstm_hidden", "lstm_cell"}

// Kind classifies a task by its name: its main operator, and for convolutions whether they are pointwise or
// depthwise.
func Kind(name string) string {
	operators, rest, _ := strings.Cut(name, " ")
	list := strings.Split(operators, "+")
	at := slices.IndexFunc(list, func(o string) bool { return slices.Contains(heavy, o) })
	kind := list[max(at, 0)]
	switch {
	case strings.Contains(rest, "depthwise"):
		return kind + " depthwise"
	case kind == "conv2d" && strings.Contains(rest, "k1x1"):
		return kind + " 1x1"
	}
	return kind
}

// ByKind returns a ranker's means over the tasks of each kind, in alphabetical order.
func ByKind(results []Accuracy, ranker string) []Accuracy {
	var kinds []string
	for _, r := range results {
		kinds = append(kinds, Kind(r.Task))
	}
	slices.Sort(kinds)
	var list []Accuracy
	for _, kind := range slices.Compact(kinds) {
		own := slices.DeleteFunc(slices.Clone(results), func(r Accuracy) bool { return r.Ranker != ranker || Kind(r.Task) != kind })
		mean := MeanAccuracy(own, ranker)
		mean.Task = kind
		list = append(list, mean)
	}
	return list
}

// nearBy is the distance of workloads, in mean doublings of their sizes, below which they are considered
// similar.
const nearBy = 0.35

// groupsOf numbers groups of tasks that are similar, directly or through others. It keeps similar tasks, such as the
// layers of a network that differ by a few channels, in one fold.
func groupsOf(tasks []MeasuredTask) (numbers []int, groups int) {
	shapes := make([]expr.Shape, len(tasks))
	numbers = make([]int, len(tasks))
	for k, t := range tasks {
		shapes[k], numbers[k] = t.Shape, k
		for i := range k {
			if numbers[i] != numbers[k] && shapes[k].Distance(shapes[i]) < nearBy {
				join(numbers[:k+1], numbers[i], numbers[k])
			}
		}
	}
	return renumbered(numbers)
}

// join merges two groups under the lower number.
func join(numbers []int, a, b int) {
	for k, n := range numbers {
		if n == a || n == b {
			numbers[k] = min(a, b)
		}
	}
}

// renumbered numbers the groups in order of first appearance.
func renumbered(numbers []int) (list []int, groups int) {
	known := map[int]int{}
	for _, n := range numbers {
		if _, met := known[n]; !met {
			known[n] = len(known)
		}
		list = append(list, known[n])
	}
	return list, len(known)
}
