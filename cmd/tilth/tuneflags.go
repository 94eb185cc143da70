package main

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/job"
	"github.com/tilth-dev/tilth/internal/progress"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
)

// Budget when neither --trials nor --time is given.
const defaultTime = 10 * time.Minute

// tuneFlags say what to tune and how long, wherever it is done.
type tuneFlags struct {
	model    modelFlags
	tasks    string
	threads  int
	trials   int
	time     time.Duration
	tuner    string
	seed     uint64
	numerics numericsFlag
	device   string
}

func (f *tuneFlags) add(c *cobra.Command) {
	f.model.add(c)
	c.Flags().StringVar(&f.tasks, "tasks", "", "tasks to tune: `numbers`, ranges and parts of names, e.g. 0,3-5,dense (default all)")
	c.Flags().IntVar(&f.threads, "threads", 0, "threads a kernel runs on (default the physical cores)")
	c.Flags().IntVar(&f.trials, "trials", 0, "candidates to measure, over all tasks together")
	c.Flags().DurationVar(&f.time, "time", 0, "wall-clock time to spend; whichever ends first (default 10m when no --trials are given)")
	c.Flags().StringVar(&f.tuner, "tuner", "ga", "search algorithm: "+strings.Join(tuner.Names(), ", "))
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the search")
	f.numerics.add(c)
	c.Flags().StringVar(&f.device, "device", "", "with --tracker: the device to tune for, by `name`, class or label (rack=3)")
}

// check completes the flags and says what is wrong with them.
func (f *tuneFlags) check() error {
	switch {
	case f.trials < 0 || f.trials > math.MaxInt32:
		return usagef("--trials %d: want a positive number", f.trials)
	case f.time < 0:
		return usagef("--time %s: want a positive time", f.time)
	case f.threads < 0:
		return usagef("--threads %d: want a positive number", f.threads)
	case !slices.Contains(tuner.Names(), f.tuner):
		return usagef("--tuner %s: there are %s", f.tuner, strings.Join(tuner.Names(), ", "))
	}
	if f.trials == 0 && f.time == 0 {
		f.time = defaultTime
	}
	return f.numerics.check()
}

func (f *tuneFlags) budget() progress.Budget { return progress.Budget{Trials: f.trials, Time: f.time} }

// load reads the model and selects its tasks.
func (f *tuneFlags) load(path string) ([]job.Task, error) {
	p, err := f.model.load(path)
	if err != nil {
		return nil, err
	}
	return job.Select(job.Tasks(p), f.tasks)
}

// spec is the job for tasks of a model on a target.
func (f *tuneFlags) spec(path string, tasks []job.Task, owner string, t *target.Target) *tilthv1.JobSpec {
	return job.Spec(tasks, job.Options{
		Name: strings.TrimSuffix(filepath.Base(path), ".onnx"), Owner: owner, Target: t, Trials: f.trials, Time: f.time,
		Tuner: f.tuner, Seed: f.seed, Numerics: f.numerics.level,
	})
}

// submit hands a job in to a farm.
func (f *tuneFlags) submit(ctx context.Context, c *client.Client, path string) (*tilthv1.Job, error) {
	tasks, err := f.load(path)
	if err != nil {
		return nil, err
	}
	t, err := c.FindTarget(ctx, f.device, f.threads)
	if err != nil {
		return nil, err
	}
	return c.Submit(ctx, f.spec(path, tasks, owner(), t))
}
