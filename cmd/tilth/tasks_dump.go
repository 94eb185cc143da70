package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

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
