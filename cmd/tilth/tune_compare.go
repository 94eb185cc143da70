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
	// compareShare divides the time of a job to yield the time for comparing its models. Below minCompareTime, they
	// are not compared.
	compareShare   = 5
	minCompareTime = 6 * time.Second
	// maxCompareTurns bounds the turns of a model's two packages, which have at least minCompareTurns.
	minCompareTurns, maxCompareTurns = 2, 100
)

// modelComparison has what compareModels needs beside the flags.
type modelComparison struct {
	target    *target.Target
	toolchain *toolchain.Toolchain
	storage   array.Storage
	lookup    bestschedule.Lookup
	lock      *hostlock.Lock
	// objects is the cache of compiled kernels, scratch a folder for the packages.
	objects, scratch string
}

// compareModels times each model's packages without and with its records in turns: latencies of tasks, measured one by
// one at different times, do not add up to that of the model. It gives up what takes longer than limit.
func (t *tuneCommand) compareModels(ctx context.Context, paths []string, c modelComparison, limit time.Duration) (list []progress.MeasuredModel, err error) {
	if limit < minCompareTime || len(t.kernels.list) > 0 || c.target.Objective != "" {
		return nil, nil
	}
	if !t.quiet {
		fmt.Fprintf(t.stderr, "comparing models with their default schedules, for up to %s\n", humanize.Clock(limit))
	}
	deadline := time.Now().Add(limit)
	err = t.objective.model.loadAll(paths, c.storage, func(path string, p *program.Program) error {
		end := time.Now().Add(time.Until(deadline) / time.Duration(len(paths)-len(list)))
		untuned, tuned, err := t.compareModel(ctx, p, c, end)
		if err != nil {
			return fmt.Errorf("comparing %s with its default schedules: %w", path, err)
		}
		paired := stats.PairedRatio(untuned, tuned)
		list = append(list, progress.MeasuredModel{
			Model: modelName(path), UntunedSeconds: stats.Of(untuned).Median, TunedSeconds: stats.Of(tuned).Median,
			Paired: paired, Verdict: paired.Verdict(),
		})
		return nil
	})
	return list, err
}

// compareModel returns the times in seconds of a model's packages with default and with tuned schedules.
func (t *tuneCommand) compareModel(ctx context.Context, p *program.Program, c modelComparison, end time.Time) (untuned, tuned []float64, err error) {
	limited, cancel := context.WithDeadlineCause(ctx, end, errors.New("there is no time left for it"))
	defer cancel()
	var files []string
	for _, from := range []bestschedule.Sources{{}, {Lookup: c.lookup}} {
		file := filepath.Join(c.scratch, fmt.Sprintf("model-%d.tar", len(files)))
		if err := t.compileFor(limited, p, c, from, file); err != nil {
			return nil, nil, err
		}
		defer os.Remove(file)
		files = append(files, file)
	}
	models, err := loadToTime(files, extentsFlag{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, closeModels(models)) }()
	release, err := c.lock.Time(limited)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	for turn := 0; turn < minCompareTurns || turn < maxCompareTurns && time.Now().Before(end); turn++ {
		seconds, err := packagerun.Turns(ctx, models, 1, 1)
		if err != nil {
			return nil, nil, err
		}
		untuned, tuned = append(untuned, seconds[0]...), append(tuned, seconds[1]...)
	}
	return untuned, tuned, nil
}

// compileFor compiles a model with the schedules of some sources.
func (t *tuneCommand) compileFor(ctx context.Context, p *program.Program, c modelComparison, from bestschedule.Sources, output string) error {
	choices, err := bestschedule.Choose(ctx, p, c.target, t.numerics.level, from, t.level.logger(t.stderr))
	if err != nil {
		return err
	}
	objects, err := toolchain.OpenObjects(c.objects, 0)
	if err != nil {
		return err
	}
	_, err = aot.Compile(ctx, p, aot.Options{
		Target: c.target, Toolchain: c.toolchain, Choices: choices, Parallel: runtime.NumCPU(), Output: output, Objects: objects, Apart: true,
	})
	return err
}
