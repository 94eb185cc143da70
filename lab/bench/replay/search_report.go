package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
)

// Shares returns the shares of the best known speed for which trials are counted.
func Shares() []float64 { return []float64{0.80, 0.90, HardShare, 0.99} }

// Budgets returns the numbers of trials at which results are evaluated.
func Budgets() []int { return []int{1, 2, 4, 8, 16, 32, 64, 128, 256} }

// Report is the result of a comparison.
type Report struct {
	Budget  int          `json:"budget"`
	Seeds   int          `json:"seeds"`
	Shares  []float64    `json:"shares"`
	Budgets []int        `json:"budgets"`
	Tasks   []TaskReport `json:"tasks"`
	// Median is over the tasks: of the mean trials to each share, and of the mean share after each budget.
	Median []SearchResult `json:"median"`
	// Mean is over the tasks. If most are easy, the median does not separate searches.
	Mean []SearchResult `json:"mean"`
	// Hard holds the medians over the HardTasks, whose default schedule is far from the best.
	Hard      []SearchResult `json:"hard_median"`
	HardTasks int            `json:"hard_tasks"`
	// Winners lists the searches with the largest mean share after each budget, among those that do not know the
	// workload. Ties list several.
	Winners [][]string `json:"winners"`
}

// TaskReport describes one set.
type TaskReport struct {
	Task   string `json:"task"`
	Model  string `json:"model"`
	Digest string `json:"workload"`
	// Points counts the schedules of the space. Unknown counts those that the set lacks; they fail.
	Points  int `json:"points"`
	Unknown int `json:"unknown"`
	// Best is the lowest latency of the set in seconds.
	Best float64 `json:"best_s"`
	// Default is the share of the best speed that the default schedule reaches. Guess is the share of the schedule
	// that the cost model predicts from all other workloads, without a trial.
	Default float64        `json:"default_share"`
	Guess   float64        `json:"guess_share"`
	Results []SearchResult `json:"results"`
}

// SearchResult is the result of one search.
type SearchResult struct {
	Search string `json:"search"`
	// Trials holds the mean number of trials to each share. A run that misses it counts as the budget.
	Trials []float64 `json:"trials"`
	// Missed counts the runs that missed each share. Over tasks, it counts tasks with such runs.
	Missed []int `json:"missed"`
	// After holds the mean share of the best known speed after each budget.
	After []float64 `json:"share_after"`
}

// report summarises the runs, which are ordered by device, variant and seed.
func report(devices []*device, guesses []float64, runs []*run, o SearchOptions) *Report {
	r := &Report{Budget: o.Budget, Seeds: o.Seeds, Shares: Shares()}
	for _, b := range Budgets() {
		if b <= o.Budget {
			r.Budgets = append(r.Budgets, b)
		}
	}
	for k, d := range devices {
		t := TaskReport{Task: d.set.Task, Model: d.set.Model, Digest: d.digest, Points: len(d.points) + d.unknown, Unknown: d.unknown, Best: d.best, Default: d.defaultShare(), Guess: guesses[k]}
		for v, variant := range o.Variants {
			from := (k*len(o.Variants) + v) * o.Seeds
			t.Results = append(t.Results, r.result(variant.Name, runs[from:from+o.Seeds]))
		}
		r.Tasks = append(r.Tasks, t)
	}
	r.Median, r.Mean = r.over(o.Variants, r.Tasks, median), r.over(o.Variants, r.Tasks, mean)
	hard := slices.DeleteFunc(slices.Clone(r.Tasks), func(t TaskReport) bool { return t.Default >= HardShare })
	r.Hard, r.HardTasks = r.over(o.Variants, hard, median), len(hard)
	for k := range r.Budgets {
		r.Winners = append(r.Winners, r.winners(o.Variants, k))
	}
	return r
}

func (r *Report) result(name string, runs []*run) SearchResult {
	result := SearchResult{Search: name}
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

// HardShare is the share that a hard task's default schedule misses. It is one of Shares.
const HardShare = 0.95

func median(s stats.Summary) float64 { return s.Median }

func mean(s stats.Summary) float64 { return s.Mean }

// over summarises each search over tasks. It returns nil without tasks.
func (r *Report) over(variants []Variant, tasks []TaskReport, summary func(stats.Summary) float64) []SearchResult {
	if len(tasks) == 0 {
		return nil
	}
	list := make([]SearchResult, len(variants))
	for v, variant := range variants {
		of := func(value func(SearchResult) float64) float64 {
			var values []float64
			for _, t := range tasks {
				values = append(values, value(t.Results[v]))
			}
			return summary(stats.Of(values))
		}
		m := SearchResult{Search: variant.Name}
		for k := range r.Shares {
			m.Trials = append(m.Trials, of(func(x SearchResult) float64 { return x.Trials[k] }))
			missed := 0
			for _, t := range tasks {
				missed += min(1, t.Results[v].Missed[k])
			}
			m.Missed = append(m.Missed, missed)
		}
		for k := range r.Budgets {
			m.After = append(m.After, of(func(x SearchResult) float64 { return x.After[k] }))
		}
		list[v] = m
	}
	return list
}

// winners returns the searches with the largest mean share after a budget, rounded to a thousandth, among those that
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

// Write writes tables: a row for each task, the medians and means, and the best searches. If each is set, the results
// of every task come first.
func (r *Report) Write(w io.Writer, each bool) error {
	var text strings.Builder
	if each {
		for _, t := range r.Tasks {
			fmt.Fprintf(&text, "%s (%s): %d schedules, best %s, the default reaches %.0f %%\n", t.Task, t.Model, t.Points, humanize.Seconds(t.Best),
				100*t.Default)
			writeResults(&text, r, t.Results)
			text.WriteString("\n")
		}
	}
	writeTasks(&text, r)
	fmt.Fprintf(&text, "\nMedian of %d tasks, %d seeds: trials to a share of the best known speed, and the share after so many trials\n",
		len(r.Tasks), r.Seeds)
	writeResults(&text, r, r.Median)
	if r.HardTasks > 0 && r.HardTasks < len(r.Tasks) {
		fmt.Fprintf(&text, "\nMedian of the %d of them whose default schedule does not reach %.0f %%\n", r.HardTasks, 100*HardShare)
		writeResults(&text, r, r.Hard)
	}
	fmt.Fprintf(&text, "\nMean of %d tasks\n", len(r.Tasks))
	writeResults(&text, r, r.Mean)
	text.WriteString("\n")
	for k, b := range r.Budgets {
		fmt.Fprintf(&text, "best after %d trials: %s\n", b, cmp.Or(strings.Join(r.Winners[k], ", "), humanize.Missing))
	}
	fmt.Fprintf(&text, "+ some runs did not come there within %d trials, and count as so many\n", r.Budget)
	_, err := io.WriteString(w, text.String())
	return err
}

// writeTasks writes a row for each task, with the trials of each search to HardShare.
func writeTasks(w *strings.Builder, r *Report) {
	share := 0
	headings := []string{"TASK", ">SCHEDULES", ">BEST", ">DEFAULT", ">GUESS"}
	for k, s := range r.Shares {
		if s == HardShare {
			share = k
		}
	}
	for _, one := range r.Median {
		headings = append(headings, ">"+one.Search)
	}
	table := humanize.NewTable(headings...)
	for _, t := range r.Tasks {
		cells := []string{t.Task, strconv.Itoa(t.Points), humanize.Seconds(t.Best), fmt.Sprintf("%.0f %%", 100*t.Default), fmt.Sprintf("%.0f %%", 100*t.Guess)}
		for _, one := range t.Results {
			cells = append(cells, trialsCell(one, share))
		}
		table.Row(cells...)
	}
	fmt.Fprintf(w, "Trials to %.0f %% of the best known speed, and the share of it that the default schedule and a guess without a trial reach\n", 100*r.Shares[share])
	_ = table.Write(w) // a builder never fails
}

// writeResults writes a row for each search.
func writeResults(w *strings.Builder, r *Report, results []SearchResult) {
	headings := []string{"SEARCH"}
	for _, s := range r.Shares {
		headings = append(headings, fmt.Sprintf(">TO %.0f %%", 100*s))
	}
	for _, b := range r.Budgets {
		headings = append(headings, fmt.Sprintf(">AFTER %d", b))
	}
	table := humanize.NewTable(headings...)
	for _, one := range results {
		cells := []string{one.Search}
		for k := range one.Trials {
			cells = append(cells, trialsCell(one, k))
		}
		for _, share := range one.After {
			cells = append(cells, fmt.Sprintf("%.1f %%", 100*share))
		}
		table.Row(cells...)
	}
	_ = table.Write(w) // a builder never fails
}

func trialsCell(r SearchResult, share int) string {
	mark := " "
	if r.Missed[share] > 0 {
		mark = "+"
	}
	return fmt.Sprintf("%.1f%s", r.Trials[share], mark)
}
