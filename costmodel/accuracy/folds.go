package accuracy

import (
	"context"
	"fmt"
	"time"
)

// Result is how well a ranker does on one task that it was not trained on, or on the mean of several.
type Result struct {
	Task   string `json:"task"`
	Ranker string `json:"ranker"`
	// Pairwise is of the pairs that differ by more than the noise, Resolved of those whose intervals do not overlap either, AllPairs of all.
	Pairwise float64 `json:"pairwise"`
	Resolved float64 `json:"resolved"`
	AllPairs float64 `json:"all_pairs"`
	// Recall is of the fastest 5 %, Regret that of the best 16 scores.
	Recall float64 `json:"recall"`
	Regret float64 `json:"regret"`
}

const (
	// topShare is the share of candidates that count as fastest.
	topShare = 0.05
	// picks is how many candidates one batch of a search measures.
	picks = 16
)

// Options are how models are compared.
type Options struct {
	// Folds is into how many parts the tasks are divided; each is ranked by models of the others.
	Folds int
	// Noise is the share by which latencies must differ to be told apart.
	Noise float64
	// Seconds hears how long each ranker took for a fold, training and ranking; nil for nobody.
	Seconds func(ranker string, fold int, seconds float64)
}

// Compare ranks each task by models of tasks of other folds: workload k belongs to fold k modulo their number, with all tasks of it. In
// each fold the rankers take turns.
func Compare(ctx context.Context, tasks []Task, rankers []Ranker, o Options) ([]Result, error) {
	numbers := workloads(tasks)
	if n := len(numbers); o.Folds < 2 || o.Folds > n {
		return nil, fmt.Errorf("accuracy: %d folds of %d workloads: give at least 2, and no more folds than workloads", o.Folds, n)
	}
	var results []Result
	for fold := range o.Folds {
		var train, test []Task
		for _, t := range tasks {
			if numbers[t.workload()]%o.Folds == fold {
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

// workloads numbers the workloads of tasks in order.
func workloads(tasks []Task) map[string]int {
	numbers := map[string]int{}
	for _, t := range tasks {
		if _, known := numbers[t.workload()]; !known {
			numbers[t.workload()] = len(numbers)
		}
	}
	return numbers
}

func judge(t *Task, ranker string, scores []float64, noise float64) Result {
	latencies := t.latencies()
	r := Result{Task: t.Name, Ranker: ranker, Recall: Recall(latencies, scores, topShare), Regret: Regret(latencies, scores, picks)}
	differ := func(fast, slow int) bool { return latencies[slow] > latencies[fast]*(1+noise) }
	r.Pairwise, _ = Pairwise(latencies, scores, differ)
	r.Resolved, _ = Pairwise(latencies, scores, func(fast, slow int) bool {
		return differ(fast, slow) && t.Intervals[fast].High < t.Intervals[slow].Low
	})
	r.AllPairs, _ = Pairwise(latencies, scores, func(fast, slow int) bool { return latencies[slow] > latencies[fast] })
	return r
}

// Mean is a ranker's mean over all tasks.
func Mean(results []Result, ranker string) Result {
	mean, n := Result{Task: "mean", Ranker: ranker}, 0.0
	for _, r := range results {
		if r.Ranker != ranker {
			continue
		}
		n++
		mean.Pairwise += r.Pairwise
		mean.Resolved += r.Resolved
		mean.AllPairs += r.AllPairs
		mean.Recall += r.Recall
		mean.Regret += r.Regret
	}
	if n == 0 {
		return mean
	}
	mean.Pairwise /= n
	mean.Resolved /= n
	mean.AllPairs /= n
	mean.Recall /= n
	mean.Regret /= n
	return mean
}
