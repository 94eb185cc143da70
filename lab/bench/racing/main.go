package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "racing:", err)
		os.Exit(1)
	}
}

// options are what the command line asks for.
type options struct {
	model, dir, target string
	threads            int
	skip, tasks        int
	candidates         int
	buildOnly, table   bool
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("racing", flag.ContinueOnError)
	flags.StringVar(&o.model, "model", "resnet-50", "built-in model, or ONNX file, whose tasks to take")
	flags.StringVar(&o.target, "target", "native", "target to compile for; it must run here")
	flags.IntVar(&o.threads, "threads", 1, "threads to measure on")
	flags.IntVar(&o.skip, "skip", 0, "leave out so many of the model's tasks")
	flags.IntVar(&o.tasks, "tasks", 8, "take so many of those after them")
	flags.IntVar(&o.candidates, "candidates", 24, "candidates of each task")
	flags.StringVar(&o.dir, "dir", ".tools/racing", "folder that keeps what was built and measured")
	flags.BoolVar(&o.buildOnly, "build", false, "build only, so that a later run does nothing but measure")
	flags.BoolVar(&o.table, "table", false, "write the table of what was measured before")
	err = flags.Parse(args)
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	results := filepath.Join(o.dir, "results.jsonl")
	if !o.table {
		if err := o.measure(ctx, results); err != nil || o.buildOnly {
			return err
		}
	}
	all, err := readResults(results)
	if err != nil {
		return err
	}
	writeTable(os.Stdout, all)
	return nil
}

// measure builds what is not built and measures it, a task after the other.
func (o options) measure(ctx context.Context, results string) error {
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	names, workloads, err := b.workloads()
	if err != nil {
		return err
	}
	for k, w := range workloads {
		t, err := b.build(ctx, names[k], w)
		if err != nil {
			return fmt.Errorf("%s: %w", names[k], err)
		}
		if o.buildOnly {
			continue
		}
		var r *result
		if err := hostlock.Timed(ctx, func() error { r, err = b.race(ctx, t); return err }); err != nil {
			return fmt.Errorf("%s: %w", names[k], err)
		}
		if err := appendResult(results, r); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %d candidates\n", names[k], len(r.Candidates))
	}
	return nil
}

var errNoCandidates = errors.New("fewer than two of its candidates were built")
