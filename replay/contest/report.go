package contest

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/stat"
)

// Shares of the best known speed that searches are timed to, in trials.
func Shares() []float64 { return []float64{0.80, 0.90, HardShare, 0.99} }

// Budgets at which what was found is looked at.
func Budgets() []int { return []int{8, 16, 32, 64, 128, 256} }

// Report is what came out.
type Report struct {
	Budget  int       `json:"budget"`
	Seeds   int       `json:"seeds"`
	Shares  []float64 `json:"shares"`
	Budgets []int     `json:"budgets"`
	Tasks   []Task    `json:"tasks"`
	// Median is over the tasks: of the mean trials to each share, and of the mean share after each budget.
	Median []Result `json:"median"`
	// Hard are the medians over the HardTasks whose default schedule is far from the best, and which leave more to a search.
	Hard      []Result `json:"hard_median"`
	HardTasks int      `json:"hard_tasks"`
	// Winners are the searches of the largest mean share after each budget, of those that do not know the workload; several when they are
	// level.
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
	// Default is the share that the default schedule reaches.
	Default float64  `json:"default_share"`
	Results []Result `json:"results"`
}

// Result is one search.
type Result struct {
	Search string `json:"search"`
	// Trials are the mean numbers of trials to each share. A run that does not come there counts as the budget.
	Trials []float64 `json:"trials"`
	// Missed counts the runs (of a median, tasks whose mean has such runs) that did not come there.
	Missed []int `json:"missed"`
	// After are the mean shares of the best known speed after each budget.
	After []float64 `json:"share_after"`
}

func report(devices []*device, runs []*run, o Options) *Report {
	r := &Report{Budget: o.Budget, Seeds: o.Seeds, Shares: Shares()}
	for _, b := range Budgets() {
		if b <= o.Budget {
			r.Budgets = append(r.Budgets, b)
		}
	}
	for k, d := range devices {
		t := Task{Task: d.set.Task, Model: d.set.Model, Digest: d.digest, Points: len(d.points) + d.unknown, Unknown: d.unknown, Best: d.best, Default: d.defaultShare()}
		for v, variant := range o.Variants {
			from := (k*len(o.Variants) + v) * o.Seeds
			t.Results = append(t.Results, r.result(variant.Name, runs[from:from+o.Seeds]))
		}
		r.Tasks = append(r.Tasks, t)
	}
	r.Median = r.medians(o.Variants, r.Tasks)
	hard := slices.DeleteFunc(slices.Clone(r.Tasks), func(t Task) bool { return t.Default >= HardShare })
	r.Hard, r.HardTasks = r.medians(o.Variants, hard), len(hard)
	for k := range r.Budgets {
		r.Winners = append(r.Winners, r.winners(o.Variants, k))
	}
	return r
}

// defaultShare is what the default schedule reaches; 0 when it failed.
func (d *device) defaultShare() float64 {
	sch, err := d.space.Apply(d.space.Default())
	if err != nil {
		return 0
	}
	p := d.points[schedule.Digest(sch.Trace())]
	if p == nil || p.Error != "" {
		return 0
	}
	return d.best / p.LatencySeconds()
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
	return result
}

// HardShare is what the default schedule of a hard task does not reach; it is one of Shares.
const HardShare = 0.95

// medians are those of each search over some tasks; none when there are no tasks.
func (r *Report) medians(variants []Variant, tasks []Task) []Result {
	if len(tasks) == 0 {
		return nil
	}
	list := make([]Result, len(variants))
	for v, variant := range variants {
		over := func(value func(Result) float64) float64 {
			var values []float64
			for _, t := range tasks {
				values = append(values, value(t.Results[v]))
			}
			return stat.Of(values).Median
		}
		m := Result{Search: variant.Name}
		for k := range r.Shares {
			m.Trials = append(m.Trials, over(func(x Result) float64 { return x.Trials[k] }))
			missed := 0
			for _, t := range tasks {
				missed += min(1, t.Results[v].Missed[k])
			}
			m.Missed = append(m.Missed, missed)
		}
		for k := range r.Budgets {
			m.After = append(m.After, over(func(x Result) float64 { return x.After[k] }))
		}
		list[v] = m
	}
	return list
}

// winners are the searches with the largest mean share over the tasks after a budget, to a thousandth, of those that do not know the
// workload. The median would not tell them apart where most tasks are easy.
func (r *Report) winners(variants []Variant, budget int) []string {
	best, names := math.Inf(-1), []string(nil)
	for v, variant := range variants {
		sum := 0.0
		for _, t := range r.Tasks {
			sum += t.Results[v].After[budget]
		}
		mean := math.Round(1000 * sum / float64(len(r.Tasks)))
		if variant.Known == Same || mean < best {
			continue
		}
		if mean > best {
			best, names = mean, nil
		}
		names = append(names, variant.Name)
	}
	return names
}
