package contest

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/stat"
)

// Shares of the best known speed that searches are timed to, in trials.
func Shares() []float64 { return []float64{0.80, 0.90, 0.95, 0.99} }

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
	// Winners are the searches of the largest median share after each budget, of those that do not know the workload; several when they are
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
	r.sum(o.Variants)
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

// sum is the medians over the tasks, and who wins.
func (r *Report) sum(variants []Variant) {
	for v, variant := range variants {
		m := Result{Search: variant.Name}
		over := func(value func(Result) float64) float64 {
			var list []float64
			for _, t := range r.Tasks {
				list = append(list, value(t.Results[v]))
			}
			return stat.Of(list).Median
		}
		for k := range r.Shares {
			m.Trials = append(m.Trials, over(func(x Result) float64 { return x.Trials[k] }))
			missed := 0
			for _, t := range r.Tasks {
				missed += min(1, t.Results[v].Missed[k])
			}
			m.Missed = append(m.Missed, missed)
		}
		for k := range r.Budgets {
			m.After = append(m.After, over(func(x Result) float64 { return x.After[k] }))
		}
		r.Median = append(r.Median, m)
	}
	for k := range r.Budgets {
		r.Winners = append(r.Winners, winners(r.Median, variants, k))
	}
}

// winners are the searches with the largest share at a budget, to a thousandth, of those that do not know the workload.
func winners(list []Result, variants []Variant, budget int) []string {
	best, names := math.Inf(-1), []string(nil)
	for k, m := range list {
		share := math.Round(1000 * m.After[budget])
		if variants[k].Known == Same || share < best {
			continue
		}
		if share > best {
			best, names = share, nil
		}
		names = append(names, m.Search)
	}
	return names
}
