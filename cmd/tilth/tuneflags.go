package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/progress"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// defaultTime is the budget without --trials and --time.
const defaultTime = 10 * time.Minute

// tuneFlags selects what to tune, and for how long, locally or on a farm.
type tuneFlags struct {
	objective  selectionFlags
	threads    int
	trials     int
	time       time.Duration
	earlyStop  int
	tuner      string
	seed       uint64
	noTransfer bool
	numerics   numericsFlag
	storage    storageFlag
	device     string
	name       string
	priority   int
	private    bool
	kernels    kernelsFlag
	low        objectiveFlag
	// seeds holds the imported seeds; nil until readSeeds.
	seeds *importedseeds.File
}

func (f *tuneFlags) add(c *cobra.Command) {
	f.objective.add(c)
	c.Flags().IntVar(&f.threads, "threads", 0, "threads per kernel (default the number of cores)")
	c.Flags().IntVar(&f.trials, "trials", 0, "total number of candidates to measure")
	c.Flags().DurationVar(&f.time, "time", 0, "wall-clock limit (default 10m without --trials)")
	c.Flags().IntVar(&f.earlyStop, "early-stop", 0, "stop after this many trials without improvement (0 = never)")
	c.Flags().StringVar(&f.tuner, "tuner", tuner.Best, "search algorithm: "+strings.Join(tuner.Names(), ", "))
	c.Flags().Uint64Var(&f.seed, "seed", 0, "random seed of the search")
	c.Flags().BoolVar(&f.noTransfer, "no-transfer", false, "disable transfer learning: ignore earlier records and imported seeds")
	atLeast(c, 0, "threads", "trials", "time", "early-stop")
	f.low.add(c)
	f.numerics.add(c)
	f.storage.add(c)
	f.storage.addWeights(c)
	c.Flags().StringVar(&f.device, "device", "", "device `name`, class or label (rack=3)")
	c.Flags().StringVar(&f.name, "name", "", "name of the job in listings (default the file names of the models)")
	c.Flags().IntVar(&f.priority, "priority", wire.DefaultPriority,
		fmt.Sprintf("the job's share among your other jobs, 1 to %d", wire.MaxPriority))
	f.kernels.add(c, "`folder` of a hand-written kernel to try; repeatable")
	c.Flags().BoolVar(&f.private, "private", false, "hide the job and its records from all but you and the admins")
}

// check completes and validates the flags for a number of models.
func (f *tuneFlags) check(models int) error {
	if f.priority < 1 || f.priority > wire.MaxPriority {
		return usagef("--priority %d: want 1 to %d", f.priority, wire.MaxPriority)
	}
	if f.trials == 0 && f.time == 0 {
		f.time = defaultTime
	}
	if _, err := f.objective.modelWeights(models); err != nil {
		return err
	}
	if err := f.storage.check(f.numerics.level); err != nil {
		return err
	}
	return f.kernels.read()
}

// readSeeds reads the seeds beside a records file, by default the user's own.
func (f *tuneFlags) readSeeds(records string) error {
	path, err := recordsPath(records)
	if err != nil || f.noTransfer {
		return err
	}
	f.seeds, err = importedseeds.Read(importedseeds.Path(path))
	return err
}

// options returns the options of the job for an owner.
func (f *tuneFlags) options(owner string) jobclient.Options {
	return jobclient.Options{
		Name: f.name, Owner: owner, Trials: f.trials, Time: f.time, EarlyStop: f.earlyStop, Priority: f.priority, Private: f.private,
		Tuner: f.tuner, Seed: f.seed, Numerics: f.numerics.level, NoTransfer: f.noTransfer, Kernels: f.kernels.list,
		Seeds: f.seeds,
	}
}

// loader returns a function that loads the objective for a target, whose programs may store factors in a smaller type.
func (f *tuneFlags) loader(paths []string) jobclient.Load {
	var last *jobclient.Objective
	return func(t *target.Target) (o *jobclient.Objective, err error) {
		storage := f.storage.always()
		if t != nil && last != nil && !t.SupportsOpenExtents() && last.Open != "" {
			return nil, fmt.Errorf("%s cannot stay open for a GPU: fix it by --shape", last.Open)
		}
		if t != nil {
			if storage, err = f.storage.on(t, f.numerics.level); err != nil {
				return nil, err
			}
		}
		if last == nil || last.Storage != storage {
			if last, err = f.objective.load(paths, storage); err != nil {
				return nil, err
			}
		}
		return last, nil
	}
}

// submit submits a job to a farm that has a device and a builder for it; see tuning.Submit.
func (f *tuneFlags) submit(ctx context.Context, c *client.Client, paths []string, patience *client.Patience) (*tilthv1.Job, error) {
	if err := f.readSeeds(""); err != nil {
		return nil, err
	}
	choice := jobclient.DeviceChoice{Device: f.device, Threads: f.threads, Objective: f.low.objective()}
	return jobclient.Submit(ctx, c, f.loader(paths), f.options(owner()), choice, patience)
}

// plotFlag names the file for a plot of a job's latency; empty means none.
type plotFlag string

func (f *plotFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(f), "plot", "", "SVG `file` for the latency over time and trials")
}

// begin writes an empty plot, so that an unwritable file is detected early.
func (f plotFlag) begin() error {
	if f == stdio {
		return usagef("--plot -: name a file, since standard output has the summary")
	}
	return f.draw(plotCurve{Title: "not measured yet"})
}

// write plots the tally of a job.
func (f plotFlag) write(j *tilthv1.Job, t *progress.Tally) error {
	return f.draw(plotCurve{
		Title:  j.GetSpec().GetName() + " on " + j.GetSpec().GetTarget().GetFingerprint(),
		Points: t.Curve, Elapsed: t.Elapsed(), Trials: t.Trials(), Untuned: t.UntunedSeconds(), Limit: t.LimitSeconds(),
	})
}

func (f plotFlag) draw(c plotCurve) error {
	if f == "" {
		return nil
	}
	return filesystem.WriteFile(string(f), c.write)
}

// costModelFlag names a cost model to use instead of training one on records.
type costModelFlag struct{ file string }

func (f *costModelFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "cost-model", "", "cost model `file` to use instead of training one, in LightGBM text format")
}

// models returns the source of cost models: the file, or a cache folder.
func (f *costModelFlag) models(cache string) (transfer.Models, error) {
	m := transfer.Models{Prior: costmodel.PriorFor, Dir: filepath.Join(cache, "models")}
	if f.file == "" {
		return m, nil
	}
	var err error
	m.Given, err = costmodel.ReadFile(f.file, registry.FeatureSets()...)
	return m, err
}

// selectionFlags selects the models and tasks whose latency to minimize, and their weights.
type selectionFlags struct {
	model   modelFlags
	tasks   string
	weights string
	list    string
	// listed is the content of the list file.
	listed []byte
}

func (f *selectionFlags) add(c *cobra.Command) {
	f.model.add(c)
	c.Flags().StringVar(&f.weights, "weight", "", "weight of each model, in order: `numbers` such as 3,1 (default 1 each)")
	c.Flags().StringVar(&f.tasks, "tasks", "", "tasks to tune: `numbers`, ranges or parts of names, such as 0,3-5,dense (default all)")
	c.Flags().StringVar(&f.list, "task-weights", "", "`file` of tasks to tune, with weights: lines such as '2.5 dense'")
	c.MarkFlagsMutuallyExclusive("task-weights", "tasks")
	c.MarkFlagsMutuallyExclusive("task-weights", "weight")
}

// modelWeights returns the weight of each model.
func (f *selectionFlags) modelWeights(models int) ([]float64, error) {
	weights := slices.Repeat([]float64{1}, models)
	if f.weights == "" {
		return weights, nil
	}
	parts := strings.Split(f.weights, ",")
	if len(parts) != models {
		return nil, usagef("--weight %s: want a number for each of the %d models, in their order, such as 3,1", f.weights, models)
	}
	for i, part := range parts {
		weight, err := jobclient.ParseWeight(strings.TrimSpace(part))
		if err != nil {
			return nil, usagef("--weight %s: %w", f.weights, err)
		}
		weights[i] = weight
	}
	return weights, nil
}

// load reads the models with a storage type and selects their tasks. It may be called again.
func (f *selectionFlags) load(paths []string, storage array.Storage) (*jobclient.Objective, error) {
	weights, err := f.modelWeights(len(paths))
	if err != nil {
		return nil, err
	}
	o := &jobclient.Objective{Storage: storage}
	read := 0
	err = f.model.loadAll(paths, storage, func(path string, p *program.Program) error {
		o.Add(modelName(path), p, weights[read])
		read++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.Tasks, err = f.choose(o.Tasks); err == nil && len(o.Tasks) == 0 {
		err = fmt.Errorf("%s: it computes nothing, so there is nothing to tune", strings.Join(paths, ", "))
	}
	return o, err
}

func (f *selectionFlags) choose(tasks []jobclient.Task) ([]jobclient.Task, error) {
	if f.list == "" {
		return jobclient.Select(tasks, f.tasks)
	}
	if f.listed == nil {
		if err := f.readList(); err != nil {
			return nil, fmt.Errorf("--task-weights: %w", err)
		}
	}
	chosen, err := jobclient.WeighByList(tasks, bytes.NewReader(f.listed))
	if err != nil {
		return nil, fmt.Errorf("--task-weights: %s: %w", f.list, err)
	}
	return chosen, nil
}

// maxListBytes bounds the list file.
const maxListBytes = 16 << 20

// readList reads the list of tasks and weights.
func (f *selectionFlags) readList() error {
	list := f.model.stdin()
	if f.list != stdio {
		file, err := os.Open(f.list)
		if err != nil {
			return err
		}
		defer file.Close()
		list = file
	}
	data, err := io.ReadAll(io.LimitReader(list, maxListBytes+1))
	if err == nil && len(data) > maxListBytes {
		err = fmt.Errorf("%s has more than %d bytes", f.list, maxListBytes)
	}
	f.listed = data
	return err
}
