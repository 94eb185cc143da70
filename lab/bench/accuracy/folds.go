package accuracy

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Result holds a ranker's accuracy on one unseen task, or the mean over several.
type Result struct {
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
	// clear is the relative latency difference that counts as clear.
	clear = 0.05
)

// Options configures a comparison.
type Options struct {
	// Folds is the number of folds. Models of the others rank each fold.
	Folds int
	// Noise is the relative latency difference below which candidates count as equal.
	Noise float64
	// Seconds, if set, is called with each ranker's time for a fold, training and ranking.
	Seconds func(ranker string, fold int, seconds float64)
}

// Compare ranks each task with models trained on the other folds. Group k of similar tasks belongs to fold k modulo
// the number of folds. In each fold the rankers take turns.
func Compare(ctx context.Context, tasks []Task, rankers []Ranker, o Options) ([]Result, error) {
	numbers, n := groupsOf(tasks)
	if o.Folds < 2 || o.Folds > n {
		return nil, fmt.Errorf("accuracy: %d folds of %d kinds of workloads: give at least 2, and no more folds than kinds", o.Folds, n)
	}
	var results []Result
	for fold := range o.Folds {
		var train, test []Task
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
				return nil, fmt.Errorf("accuracy: %s: %w", r.Name(), err)
			}
			if o.Seconds != nil {
				o.Seconds(r.Name(), fold, time.Since(begin).Seconds())
			}
			for k := range test {
				results = append(results, judge(&test[k], r.Name(), scores[k], o.Noise))
			}
		}
	}
	return results, nil
}

func judge(t *Task, ranker string, scores []float64, noise float64) Result {
	latencies := t.latencies()
	r := Result{Task: t.Name, Tasks: 1, Ranker: ranker, Recall: Recall(latencies, scores, topShare), Regret: Regret(latencies, scores, picks), Off: Off(latencies, scores)}
	differ := func(fast, slow int) bool { return latencies[slow] > latencies[fast]*(1+noise) }
	r.Pairwise = Pairwise(latencies, scores, differ)
	r.Resolved = Pairwise(latencies, scores, func(fast, slow int) bool {
		return differ(fast, slow) && t.Intervals[fast].High < t.Intervals[slow].Low
	})
	r.Clear = Pairwise(latencies, scores, func(fast, slow int) bool { return latencies[slow] > latencies[fast]*(1+clear) })
	r.AllPairs = Pairwise(latencies, scores, func(fast, slow int) bool { return latencies[slow] > latencies[fast] })
	return r
}

// Mean returns a ranker's mean over all tasks. The mean of a share covers the tasks that have such pairs.
func Mean(results []Result, ranker string) Result {
	own := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Ranker != ranker })
	mean := Result{Task: "mean", Ranker: ranker, Tasks: len(own)}
	share := func(of func(Result) Share) (m Share) {
		n := 0.0
		for _, r := range own {
			if s := of(r); s.Pairs > 0 {
				m.Pairs += s.Pairs
				m.Right += s.Right
				n++
			}
		}
		m.Right /= max(1, n)
		return m
	}
	number := func(of func(Result) float64) (m float64) {
		for _, r := range own {
			m += of(r) / float64(len(own))
		}
		return m
	}
	mean.Pairwise = share(func(r Result) Share { return r.Pairwise })
	mean.Resolved = share(func(r Result) Share { return r.Resolved })
	mean.Clear = share(func(r Result) Share { return r.Clear })
	mean.AllPairs = share(func(r Result) Share { return r.AllPairs })
	mean.Recall = number(func(r Result) float64 { return r.Recall })
	mean.Regret = number(func(r Result) float64 { return r.Regret })
	mean.Off = number(func(r Result) float64 { return r.Off })
	return mean
}
