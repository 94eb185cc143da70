package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/agent/hostlock"
	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/runner"
)

// options are what the command line asks for.
type options struct {
	model, filter   string
	operators       []string
	batches         []int64
	target          string
	threads, trials int
	random          int
	named           []string
	algorithm       string
	cache           string
	launcher        []string
	points          bool
}

// bench is what all tasks share.
type bench struct {
	options
	target   *target.Target
	tc       *toolchain.Toolchain
	compiler *builder.Compiler
	limits   runner.Limits
	dir      string
}

const (
	// batchSize is how many candidates are built before they are measured.
	batchSize = 16
	// referenceTime is generous: a reference is scalar code of one thread, and the largest workloads have 200 GFLOP.
	referenceTime = 20 * time.Minute
)

func newBench(ctx context.Context, o options, dir string) (*bench, error) {
	t, err := target.Parse(o.target, o.threads)
	if err != nil {
		return nil, err
	}
	tc, err := toolchain.Find(ctx, os.Getenv(toolchain.Variable))
	if err != nil {
		return nil, err
	}
	if o.cache, err = filepath.Abs(o.cache); err != nil {
		return nil, err
	}
	cache, err := builder.OpenCache(filepath.Join(o.cache, "objects"), 0)
	if err != nil {
		return nil, err
	}
	compiler := &builder.Compiler{Toolchain: tc, Cache: cache, Parallel: target.Processors(), CandidateTime: time.Minute}
	limits := runner.Limits{Candidate: time.Minute, Reference: referenceTime}
	return &bench{options: o, target: t, tc: tc, compiler: compiler, limits: limits, dir: dir}, nil
}

// measureAll measures what the options ask for and writes the table. Whatever can be built beforehand is built first, so that
// what is timed follows closely on one another.
func measureAll(ctx context.Context, o options, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "operators-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBench(ctx, o, dir)
	if err != nil {
		return err
	}
	workloads, err := b.workloads()
	if err != nil {
		return err
	}
	if o.random > 0 || len(o.named) > 0 {
		return b.survey(ctx, workloads, w)
	}
	var tasks []*task
	for k, one := range workloads {
		t, err := newTask(one, b, k)
		if err != nil {
			return err
		}
		if err := t.build(ctx, b, 1); err != nil {
			return err
		}
		tasks = append(tasks, t)
	}
	limits, err := b.timeDefaults(ctx, tasks)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if err := b.tune(ctx, t); err != nil {
			return err
		}
	}
	return writeTable(w, b, limits, tasks)
}

func (b *bench) workloads() ([]workload, error) {
	if b.model == "" {
		return operators(b.operators, b.batches)
	}
	list, err := modelTasks(b.model)
	return slices.DeleteFunc(list, func(w workload) bool { return !strings.Contains(w.name, b.filter) }), err
}

// timeDefaults measures the machine and the default schedules.
func (b *bench) timeDefaults(ctx context.Context, tasks []*task) (machine, error) {
	m, err := measureMachine(ctx, b.tc, b.target, b.dir, b.launcher)
	if err != nil {
		return m, err
	}
	return m, b.timed(ctx, func() error {
		for _, t := range tasks {
			if err := t.measure(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// timed keeps agents of this host from computing while something is timed.
func (b *bench) timed(ctx context.Context, work func() error) error {
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return err
	}
	release, err := lock.Time(ctx)
	if err != nil {
		return err
	}
	defer release()
	return work()
}

func (b *bench) tune(ctx context.Context, t *task) error {
	for t.trials <= b.trials {
		if err := t.build(ctx, b, min(batchSize, b.trials+1-t.trials)); err != nil {
			return err
		}
		if t.pending == nil {
			return nil
		}
		if err := b.timed(ctx, func() error { return t.measure(ctx, b) }); err != nil {
			return err
		}
	}
	if b.trials > 0 {
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", t.name, t.shape, t.bestPoint)
	}
	return nil
}
