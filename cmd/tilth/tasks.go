package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// taskRow is a task in a listing.
type taskRow struct {
	Index  int     `json:"index"`
	Task   string  `json:"task"`
	Times  int     `json:"times"`
	Flop   float64 `json:"flop"`
	Share  float64 `json:"flop_share"`
	Digest string  `json:"workload"`
	// Extents lists those with which the kernels of an open task are timed.
	Extents []string `json:"extents,omitempty"`
}

func newTasks(a *app) *cobra.Command {
	var flags modelFlags
	var dump dumpFlags
	c := &cobra.Command{
		Use: "tasks MODEL.onnx...", Short: "List the tuning tasks of models",
		Long: `List a model's tuning tasks: operators, shapes, how often each occurs, the floating point
operations of one execution, and their share of the model's operations. Several models
are listed as 'tilth tune' sees them: a task that they share is one task.

The tasks are those that 'tilth compile' has for --target, which determines the types of
8-bit products and, with --numerics fast, which weights and activations have 16 bits.

With --dump, print the graph after each pass, or the programs of the tasks, to debug
a pass or a kernel.`,
		Example: "  tilth tasks resnet18.onnx\n  tilth tasks resnet18.onnx --json | jq '.[].task'\n" +
			"  tilth tasks resnet18.onnx --dump ir --task 3 --target x86-64-v3\n" +
			"  tilth tasks resnet18.onnx --dump html --task 3 > task3.html",
		Args: cobra.MinimumNArgs(1),
	}
	flags.add(c)
	dump.add(c)
	a.tableFlags(c)
	return a.leaf(c, func(_ context.Context, args []string) error {
		if err := dump.check(c); err != nil {
			return err
		}
		storage, err := dump.storage()
		if err != nil {
			return err
		}
		if dump.what == dumpGraph {
			return dump.graphs(a, &flags, storage, args)
		}
		var models []jobclient.Model
		err = flags.loadAll(args, storage, func(_ string, p *program.Program) error {
			models = append(models, jobclient.Model{Tasks: p.Tasks, Weight: 1})
			return nil
		})
		if err != nil {
			return err
		}
		if dump.what != "" {
			return dump.write(a, jobclient.Join(models...))
		}
		rows, columns := taskRows(jobclient.Join(models...)), []string{">#", "TASK", ">TIMES", ">GFLOP", ">SHARE", "WORKLOAD"}
		if slices.ContainsFunc(rows, func(r taskRow) bool { return len(r.Extents) > 0 }) {
			columns = append(columns, "EXTENTS")
		}
		return list(a, rows, humanize.NewTable(columns...), func(r taskRow) []string {
			cells := []string{
				strconv.Itoa(r.Index), r.Task, fmt.Sprintf("%dx", r.Times), humanize.GFLOP(r.Flop),
				fmt.Sprintf("%.1f %%", 100*r.Share), humanize.Digest(r.Digest), strings.Join(r.Extents, ", "),
			}
			return cells[:len(columns)]
		})
	})
}

// pointsOf returns the extents with which kernels of an open workload are timed, such as 1x98 for two of them.
func pointsOf(w *expr.Workload) (list []string) {
	for k := range expr.Points {
		var extents []string
		for _, t := range w.Inputs {
			if t.Points != nil {
				extents = append(extents, strconv.FormatInt(t.Point(k), 10))
			}
		}
		if len(extents) > 0 {
			list = append(list, strings.Join(extents, "x"))
		}
	}
	return list
}

func taskRows(tasks []jobclient.Task) []taskRow {
	total := 0.0
	for _, t := range tasks {
		total += t.Flop * float64(t.Count)
	}
	var rows []taskRow
	for _, t := range tasks {
		row := taskRow{Index: t.Index, Task: t.Name, Times: t.Count, Flop: t.Flop, Digest: t.Workload.Digest(), Extents: pointsOf(t.Workload)}
		if total > 0 {
			row.Share = t.Flop * float64(t.Count) / total
		}
		rows = append(rows, row)
	}
	return rows
}
