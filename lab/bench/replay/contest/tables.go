package contest

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
)

// Write writes tables: a row for each task, the medians and means, and the best searches. If each is set, the results
// of every task come first.
func (r *Report) Write(w io.Writer, each bool) error {
	var text strings.Builder
	if each {
		for _, t := range r.Tasks {
			fmt.Fprintf(&text, "%s (%s): %d schedules, best %s, the default reaches %.0f %%\n", t.Task, t.Model, t.Points, show.Seconds(t.Best),
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
		fmt.Fprintf(&text, "best after %d trials: %s\n", b, cmp.Or(strings.Join(r.Winners[k], ", "), show.Missing))
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
	table := show.NewTable(headings...)
	for _, t := range r.Tasks {
		cells := []string{t.Task, strconv.Itoa(t.Points), show.Seconds(t.Best), fmt.Sprintf("%.0f %%", 100*t.Default), fmt.Sprintf("%.0f %%", 100*t.Guess)}
		for _, one := range t.Results {
			cells = append(cells, trialsCell(one, share))
		}
		table.Row(cells...)
	}
	fmt.Fprintf(w, "Trials to %.0f %% of the best known speed, and the share of it that the default schedule and a guess without a trial reach\n", 100*r.Shares[share])
	_ = table.Write(w) // a builder never fails
}

// writeResults writes a row for each search.
func writeResults(w *strings.Builder, r *Report, results []Result) {
	headings := []string{"SEARCH"}
	for _, s := range r.Shares {
		headings = append(headings, fmt.Sprintf(">TO %.0f %%", 100*s))
	}
	for _, b := range r.Budgets {
		headings = append(headings, fmt.Sprintf(">AFTER %d", b))
	}
	headings = append(headings, ">CODE")
	table := show.NewTable(headings...)
	for _, one := range results {
		cells := []string{one.Search}
		for k := range one.Trials {
			cells = append(cells, trialsCell(one, k))
		}
		for _, share := range one.After {
			cells = append(cells, fmt.Sprintf("%.1f %%", 100*share))
		}
		cells = append(cells, strconv.Itoa(int(one.Code)))
		table.Row(cells...)
	}
	_ = table.Write(w) // a builder never fails
}

func trialsCell(r Result, share int) string {
	mark := " "
	if r.Missed[share] > 0 {
		mark = "+"
	}
	return fmt.Sprintf("%.1f%s", r.Trials[share], mark)
}
