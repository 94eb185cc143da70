package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/runner/packagerun"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/progress"
)

const (
	// modelShare divides the time of a job to yield the time that its models are then measured for. Below
	// minModelTime, they are not.
	modelShare   = 5
	minModelTime = 6 * time.Second
	// maxModelTurns bounds the turns of a model's two packages.
	maxModelTurns = 100
)

// modelMeter measures models on this machine.
type modelMeter struct {
	target    *target.Target
	toolchain *toolchain.Toolchain
	storage   array.Storage
	lookup    bestschedule.Lookup
	lock      *hostlock.Lock
	// objects is the cache of compiled kernels, scratch a folder for the packages.
	objects, scratch string
}

// measureModels times each model's packages with and without its records in turns: latencies of tasks, measured one by
// one at different times, do not add up to that of the model. It gives up what takes longer than limit.
func (t *tuneCommand) measureModels(ctx context.Context, paths []string, m modelMeter, limit time.Duration) (list []progress.MeasuredModel, err error) {
	if limit < minModelTime || len(t.kernels.list) > 0 || m.target.Objective != "" {
		return nil, nil
	}
	if !t.quiet {
		fmt.Fprintf(t.stderr, "comparing models with their default schedules, for up to %s\n", humanize.Clock(limit))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the %v for it are over", limit.Round(time.Second)))
	defer cancel()
	deadline, _ := ctx.Deadline()
	err = t.objective.model.loadAll(paths, m.storage, func(path string, p *program.Program) error {
		own := time.Until(deadline) / time.Duration(len(paths)-len(list))
		samples, err := m.turns(ctx, p, t, time.Now().Add(own))
		if err != nil {
			return err
		}
		paired := stats.PairedRatio(samples[0], samples[1])
		list = append(list, progress.MeasuredModel{
			Model: modelName(path), UntunedSeconds: stats.Of(samples[0]).Median, TunedSeconds: stats.Of(samples[1]).Median,
			Paired: paired, Verdict: paired.Verdict(),
		})
		return nil
	})
	return list, err
}

// turns returns the times in seconds of a model's packages with default and with tuned schedules.
func (m modelMeter) turns(ctx context.Context, p *program.Program, t *tuneCommand, end time.Time) (samples [2][]float64, err error) {
	objects, err := toolchain.OpenObjects(m.objects, 0)
	if err != nil {
		return samples, err
	}
	var models []*aot.Model
	for k, from := range []bestschedule.Sources{{}, {Lookup: m.lookup}} {
		choices, err := bestschedule.Choose(ctx, p, m.target, t.numerics.level, from, t.level.logger(t.stderr))
		if err != nil {
			return samples, err
		}
		output := filepath.Join(m.scratch, fmt.Sprintf("model-%d.tar", k))
		defer os.Remove(output)
		o := aot.Options{Target: m.target, Toolchain: m.toolchain, Choices: choices, Parallel: runtime.NumCPU(), Output: output, Objects: objects, Apart: true}
		if _, err := aot.Compile(ctx, p, o); err != nil {
			return samples, err
		}
		model, err := aot.Load(output)
		if err != nil {
			return samples, err
		}
		defer func() { err = errors.Join(err, model.Close()) }()
		if err := model.SetInputs(packagerun.RandomInputs(model.Manifest(), nil)); err != nil {
			return samples, err
		}
		models = append(models, model)
	}
	release, err := m.lock.Time(ctx)
	if err != nil {
		return samples, err
	}
	defer release()
	for turn := 0; turn < maxModelTurns && (turn < 2 || time.Now().Before(end)); turn++ {
		seconds, err := packagerun.Turns(context.WithoutCancel(ctx), models, 1, 1)
		if err != nil {
			return samples, err
		}
		for k := range samples {
			samples[k] = append(samples[k], seconds[k]...)
		}
	}
	return samples, nil
}
