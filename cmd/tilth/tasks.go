package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
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

// dumpFlags requests the programs of tasks instead of a list.
type dumpFlags struct {
	what, task, schedule, target string
	without                      []string
	threads                      int
	numerics                     numericsFlag
	stored                       storageFlag
}

const (
	dumpGraph  = "graph"
	dumpIR     = "ir"
	dumpSource = "source"
	dumpHTML   = "html"
	// defaultSchedule is the schedule used without measurements.
	defaultSchedule = "default"
)

func (d *dumpFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&d.what, "dump", "", "print a `stage` for debugging: graph (after each pass), ir (each task's program after each pass), source, or html (a page with a task's program after each primitive and pass)")
	c.Flags().StringVar(&d.task, "task", "", "only the task with this `number` or workload digest")
	c.Flags().StringVar(&d.schedule, "schedule", defaultSchedule, "`file` with the trace of the schedule to dump, or default")
	c.Flags().StringSliceVar(&d.without, "without", nil, "leave `passes` out, such as cse,prefetch, to find the one at fault")
	targetFlag(c, &d.target, "what to list the tasks of, or dump, for")
	c.Flags().IntVar(&d.threads, "threads", 0, "threads of the target (default the physical cores)")
	atLeast(c, 0, "threads")
	d.numerics.add(c)
	d.stored.add(c)
	d.stored.addWeights(c)
}

// storage returns the storage of factors for the target.
func (d *dumpFlags) storage() (array.Storage, error) {
	on, err := registry.Target(d.target, d.threads)
	if err != nil {
		return array.Storage{}, err
	}
	return d.stored.on(on, d.numerics.level)
}

// check rejects flags without effect and unknown values.
func (d *dumpFlags) check(c *cobra.Command) error {
	if err := d.stored.check(d.numerics.level); err != nil {
		return err
	}
	ofPrograms := []string{"task", "schedule", "threads", "without"}
	for _, name := range ofPrograms {
		switch changed := c.Flags().Changed(name); {
		case changed && d.what == "":
			return usagef("--%s needs --dump", name)
		case changed && d.what == dumpGraph:
			return usagef("--%s needs --dump %s or %s: a graph has no tasks yet", name, dumpIR, dumpSource)
		}
	}
	switch {
	case d.what != "" && c.Flags().Changed("json"):
		return usagef("--dump prints programs, --json a list of tasks: leave out one of them")
	case d.what == dumpHTML && d.task == "":
		return usagef("--dump html makes a page of one kernel: choose it with --task")
	}
	return nil
}

// graphs prints the graphs of models after each pass that changed them.
func (d *dumpFlags) graphs(a *app, models *modelFlags, storage array.Storage, paths []string) error {
	return models.readAll(paths, func(path string, m *onnx.Model, o frontend.Options) error {
		o.Storage = storage
		stages, err := frontend.Dump(m, o)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, s := range stages {
			if _, err := fmt.Fprintf(a.stdout, "// %s after %s\n%s\n", path, s.Name, s.Text); err != nil {
				return err
			}
		}
		return nil
	})
}

// write prints the programs of the selected tasks.
func (d *dumpFlags) write(a *app, tasks []jobclient.Task) error {
	on, err := registry.Target(d.target, d.threads)
	if err != nil {
		return err
	}
	by, err := registry.Of(on)
	if err != nil {
		return err
	}
	chosen, err := d.choose(tasks)
	if err != nil {
		return err
	}
	for _, task := range chosen {
		s, err := d.scheduled(a, by, on, task)
		if err != nil {
			return fmt.Errorf("task %d (%s): %w", task.Index, task.Name, err)
		}
		steps, fault := by.Dump(s, on, d.without)
		if fault != nil {
			fault = fmt.Errorf("task %d (%s): %w", task.Index, task.Name, fault)
		}
		if err := errors.Join(d.print(a.stdout, task, s, steps), fault); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the tasks named by --task.
func (d *dumpFlags) choose(tasks []jobclient.Task) ([]jobclient.Task, error) {
	if d.task == "" {
		return tasks, nil
	}
	for _, t := range tasks {
		if strconv.Itoa(t.Index) == d.task || len(d.task) >= 8 && strings.HasPrefix(t.Workload.Digest(), d.task) {
			return []jobclient.Task{t}, nil
		}
	}
	return nil, fmt.Errorf("there is no task %s among %d: 'tilth tasks' lists them", d.task, len(tasks))
}

func (d *dumpFlags) scheduled(a *app, by backend.Backend, on *target.Target, task jobclient.Task) (*schedule.Schedule, error) {
	if d.schedule == defaultSchedule {
		s := by.Space(task.Workload, on, d.numerics.level)
		return s.Apply(s.Default())
	}
	trace, err := d.trace(a)
	if err != nil {
		return nil, err
	}
	s, err := schedule.Replay(task.Workload, trace)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.schedule, err)
	}
	return s, nil
}

// maxTraceBytes bounds a trace file.
const maxTraceBytes = 16 << 20

func (d *dumpFlags) trace(a *app) ([]byte, error) {
	in, err := a.openInput(d.schedule)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	trace, err := io.ReadAll(io.LimitReader(in, maxTraceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the schedule: %w", err)
	}
	if len(trace) > maxTraceBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB: name a file with a trace", d.schedule, maxTraceBytes>>20)
	}
	return trace, nil
}

// print writes the steps before the source, only the source, or a page with all of them.
func (d *dumpFlags) print(w io.Writer, task jobclient.Task, s *schedule.Schedule, steps []backend.Step) error {
	title := fmt.Sprintf("task %d: %s, workload %s", task.Index, task.Name, task.Workload.Digest())
	if d.what == dumpHTML {
		return writePage(w, title, append(primitives(s), steps...))
	}
	text := "// " + title + "\n"
	for _, step := range steps {
		switch {
		case step.Name == backend.Source && d.what == dumpSource:
			text += step.Text + "\n"
		case step.Name != backend.Source && d.what == dumpIR:
			text += fmt.Sprintf("\n// after %s, %s\n%s", step.Name, humanize.Seconds(step.Took.Seconds()), step.Text)
		}
	}
	if d.what == dumpIR {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

//go:embed tasks.html
var dumpPage string

// writePage writes a page with a kernel after each step, beside the kernel before.
func writePage(w io.Writer, title string, steps []backend.Step) error {
	type row struct {
		Name, Time string
		Hunks      []hunk
	}
	var rows []row
	var before []string
	for _, s := range steps {
		lines := strings.Split(strings.TrimSuffix(s.Text, "\n"), "\n")
		if s.Name == backend.Source {
			before = lines // another language
		}
		rows, before = append(rows, row{s.Name, humanize.Seconds(s.Took.Seconds()), diff(before, lines)}), lines
	}
	return template.Must(template.New("page").Parse(dumpPage)).Execute(w, map[string]any{"Title": title, "Steps": rows})
}

// primitives returns the loops of a schedule after each of its primitives. Where these make no program yet, the step
// has the loops before, and its name gives the reason.
func primitives(s *schedule.Schedule) (steps []backend.Step) {
	lines := strings.SplitAfter(string(s.Trace()), "\n")
	step := backend.Step{Name: "workload"}
	for k := 1; k < len(lines) && s.Own == nil; k++ {
		part, err := schedule.Replay(s.Workload, []byte(strings.Join(lines[:k], "")))
		if err == nil {
			if f, fault := lower.Schedule(part); fault == nil {
				step.Text = f.Text()
			} else {
				err = fault
			}
		}
		if err != nil {
			step.Name += ": " + err.Error()
		}
		steps = append(steps, step)
		step.Name = strings.TrimSpace(lines[k])
	}
	return steps
}

// hunk is a run of lines that two texts share, or that one has in place of the other's.
type hunk struct {
	Before, After []string
	Same          bool
}

// maxCompared bounds the pairs of lines that diff compares: texts that exceed it differ as a whole.
const maxCompared = 1 << 24

// diff returns the hunks of two texts. They share as many lines as possible.
func diff(a, b []string) (out []hunk) {
	add := func(same bool, before, after []string) {
		if len(out) == 0 || out[len(out)-1].Same != same {
			out = append(out, hunk{Same: same})
		}
		h := &out[len(out)-1]
		h.Before, h.After = append(h.Before, before...), append(h.After, after...)
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		add(true, a[:1], b[:1])
		a, b = a[1:], b[1:]
	}
	if len(a)*len(b) > maxCompared {
		add(false, a, b)
		return out
	}
	shared := make([][]int32, len(a)+1) // at i, j: the number of lines that a[i:] and b[j:] share
	for i := len(a); i >= 0; i-- {
		shared[i] = make([]int32, len(b)+1)
		for j := len(b) - 1; j >= 0 && i < len(a); j-- {
			if shared[i][j] = max(shared[i+1][j], shared[i][j+1]); a[i] == b[j] {
				shared[i][j] = shared[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			add(true, a[i:i+1], b[j:j+1])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && shared[i+1][j] >= shared[i][j+1]:
			add(false, a[i:i+1], nil)
			i++
		default:
			add(false, nil, b[j:j+1])
			j++
		}
	}
	return out
}
