package contest

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/internal/stat"
)

// Shares of the best known speed that searches are timed to, in trials.
func Shares() []float64 { return []float64{0.80, 0.90, HardShare, 0.99} }

// Budgets returns the numbers of trials at which results are evaluated.
func Budgets() []int { return []int{1, 2, 4, 8, 16, 32, 64, 128, 256} }

// Report is the result of a comparison.
type Report struct {
	Budget  int       `json:"budget"`
	Seeds   int       `json:"seeds"`
	Shares  []float64 `json:"shares"`
	Budgets []int     `json:"budgets"`
	Tasks   []Task    `json:"tasks"`
	// Median is over the tasks: of the mean trials to each share, and of the mean share after each budget.
	Median []Result `json:"median"`
	// Mean is over tasks, too: if most are easy, the median does not separate searches.
	Mean []Result `json:"mean"`
	// Hard are the medians over the HardTasks whose default schedule is far from the best, and which leave more to a
	// search.
	Hard      []Result `json:"hard_median"`
	HardTasks int      `json:"hard_tasks"`
	// Winners are the searches of the largest mean share after each budget, of those that do not know the workload;
	// several when they are level.
	Winners [][]string `json:"winners"`
}

// Task is one set.
type Task struct {
	Task   string `json:"task"`
	Model  string `json:"model"`
	Digest string `json:"workload"`
	// Points are the schedules of the space, Unknown those of them that the set does not have, which fail.
	Points  int `json:"points"`
	Unknown int `json:"unknown"`
	// Best is the least latency of the set in seconds.
	Best float64 `json:"best_s"`
	// Default is the share of that speed which the default schedule reaches, Guess that of the schedule which the cost
	// model guesses from all other workloads, without a trial.
	Default float64  `json:"default_share"`
	Guess   float64  `json:"guess_share"`
	Results []Result `json:"results"`
}

// Result is one search.
type Result struct {
	Search string `json:"search"`
	// Trials are the mean numbers of trials to each share. A run that does not come there counts as the budget.
	Trials []float64 `json:"trials"`
	// Missed counts the runs (over tasks, those whose mean has such runs) that did not come there.
	Missed []int `json:"missed"`
	// After are the mean shares of the best known speed after each budget.
	After []float64 `json:"share_after"`
	// Code is the mean of the instructions that candidates have in their source, about: what building them takes.
	Code float64 `json:"code"`
}

// report sums up the runs, which are ordered by device, variant and seed.
func report(devices []*device, guesses []float64, runs []*run, o Options) *Report {
	r := &Report{Budget: o.Budget, Seeds: o.Seeds, Shares: Shares()}
	for _, b := range Budgets() {
		if b <= o.Budget {
			r.Budgets = append(r.Budgets, b)
		}
	}
	for k, d := range devices {
		t := Task{Task: d.set.Task, Model: d.set.Model, Digest: d.digest, Points: len(d.points) + d.unknown, Unknown: d.unknown, Best: d.best, Default: d.defaultShare(), Guess: guesses[k]}
		for v, variant := range o.Variants {
			from := (k*len(o.Variants) + v) * o.Seeds
			t.Results = append(t.Results, r.result(variant.Name, runs[from:from+o.Seeds]))
		}
		r.Tasks = append(r.Tasks, t)
	}
	r.Median, r.Mean = r.over(o.Variants, r.Tasks, median), r.over(o.Variants, r.Tasks, mean)
	hard := slices.DeleteFunc(slices.Clone(r.Tasks), func(t Task) bool { return t.Default >= HardShare })
	r.Hard, r.HardTasks = r.over(o.Variants, hard, median), len(hard)
	for k := range r.Budgets {
		r.Winners = append(r.Winners, r.winners(o.Variants, k))
	}
	return r
}

func (r *Report) result(name string, runs []*run) Result {
	result := Result{Search: name}
	for _, share := range r.Shares {
		sum, missed := 0.0, 0
		for _, one := range runs {
			n, reached := one.trialsTo(share)
			if !reached {
				n = r.Budget
				missed++
			}
			sum += float64(n)
		}
		result.Trials, result.Missed = append(result.Trials, sum/float64(len(runs))), append(result.Missed, missed)
	}
	for _, b := range r.Budgets {
		sum := 0.0
		for _, one := range runs {
			sum += one.after(b)
		}
		result.After = append(result.After, sum/float64(len(runs)))
	}
	for _, one := range runs {
		result.Code += one.code / float64(len(runs))
	}
	return result
}

// HardShare is the share that a hard task's default schedule does not reach; it is one of Shares.
const HardShare = 0.95

func median(values []float64) float64 { return stat.Of(values).Median }

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// over sums up each search over some tasks; none when there are no tasks.
func (r *Report) over(variants []Variant, tasks []Task, summary func([]float64) float64) []Result {
	if len(tasks) == 0 {
		return nil
	}
	list := make([]Result, len(variants))
	for v, variant := range variants {
		of := func(value func(Result) float64) float64 {
			var values []float64
			for _, t := range tasks {
				values = append(values, value(t.Results[v]))
			}
			return summary(values)
		}
		m := Result{Search: variant.Name}
		for k := range r.Shares {
			m.Trials = append(m.Trials, of(func(x Result) float64 { return x.Trials[k] }))
			missed := 0
			for _, t := range tasks {
				missed += min(1, t.Results[v].Missed[k])
			}
			m.Missed = append(m.Missed, missed)
		}
		for k := range r.Budgets {
			m.After = append(m.After, of(func(x Result) float64 { return x.After[k] }))
		}
		m.Code = of(func(x Result) float64 { return x.Code })
		list[v] = m
	}
	return list
}

// winners are the searches with the largest mean share over the tasks after a budget, to a thousandth, of those that
// do not know the workload.
func (r *Report) winners(variants []Variant, budget int) []string {
	best, names := math.Inf(-1), []string(nil)
	for v, variant := range variants {
		share := math.Round(1000 * r.Mean[v].After[budget])
		if variant.Known == Same || share < best {
			continue
		}
		if share > best {
			best, names = share, nil
		}
		names = append(names, variant.Name)
	}
	return names
}
