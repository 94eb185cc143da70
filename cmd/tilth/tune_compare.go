package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/progress"
	"github.com/tilth-dev/tilth/tuner/recordsource"
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
	records   recordsource.Source
	// prefer stores preferences.
	prefer func(context.Context, []*tilthv1.Record) error
	lock   *hostlock.Lock
	// objects is the cache of compiled kernels, scratch a folder for the packages.
	objects, scratch string

	// preferred holds the records of default schedules that are preferred to the best ones, by workload. faster holds
	// the workloads whose tuned schedule is faster within some model.
	preferred map[string]*tilthv1.Record
	faster    map[string]bool
}

// compareModels times each model with default and with tuned schedules in turns: latencies of tasks, measured one by
// one at different times, do not add up to that of the model. A task whose tuned schedule is faster within no model
// keeps the default one. It gives up what takes longer than limit.
func (t *tuneCommand) compareModels(ctx context.Context, paths []string, c modelComparison, limit time.Duration) (list []progress.MeasuredModel, err error) {
	if limit < minCompareTime || len(t.kernels.list) > 0 || c.target.Objective != "" {
		return nil, nil
	}
	if !t.quiet {
		fmt.Fprintf(t.stderr, "comparing models with their default schedules, for up to %s\n", humanize.Clock(limit))
	}
	c.preferred, c.faster = map[string]*tilthv1.Record{}, map[string]bool{}
	deadline := time.Now().Add(limit)
	err = t.objective.model.loadAll(paths, c.storage, func(path string, p *program.Program) error {
		left := time.Until(deadline) / time.Duration(len(paths)-len(list))
		m, err := t.compareModel(ctx, modelName(path), p, &c, left)
		if err != nil {
			return fmt.Errorf("comparing %s with its default schedules: %w", path, err)
		}
		list = append(list, m)
		return nil
	})
	if err != nil {
		return list, err
	}
	maps.DeleteFunc(c.preferred, func(workload string, _ *tilthv1.Record) bool { return c.faster[workload] })
	return list, c.prefer(ctx, slices.Collect(maps.Values(c.preferred)))
}

// compareModel first times the kernels of both packages within the model, and compiles the tuned one again with the
// default schedules that win there. The rest of the time goes to whole executions.
func (t *tuneCommand) compareModel(ctx context.Context, name string, p *program.Program, c *modelComparison, limit time.Duration) (progress.MeasuredModel, error) {
	m, began := progress.MeasuredModel{Model: name}, time.Now()
	limited, cancel := context.WithDeadlineCause(ctx, began.Add(limit), errors.New("no time is left"))
	defer cancel()
	files := []string{filepath.Join(c.scratch, "untuned.tar"), filepath.Join(c.scratch, "tuned.tar")}
	defer func() {
		for _, file := range files {
			_ = os.Remove(file)
		}
	}()
	defaults, err := t.compileFor(limited, p, c, nil, files[0])
	if err != nil {
		return m, err
	}
	tuned, err := t.compileFor(limited, p, c, c.records.Best, files[1])
	if err != nil {
		return m, err
	}
	release, err := c.lock.Time(limited)
	if err != nil {
		return m, err
	}
	defer release()
	profiled, err := inTurns(ctx, files, began.Add(limit/2), false)
	if err != nil {
		return m, err
	}
	m.Tasks = measuredTasks(p, profiled)
	kept, err := t.keepDefaults(ctx, name, c, defaults, tuned, m.Tasks)
	if err == nil && kept {
		_, err = t.compileFor(ctx, p, c, c.chosen, files[1])
	}
	if err != nil {
		return m, err
	}
	timed, err := inTurns(ctx, files, began.Add(limit), true)
	if err != nil {
		return m, err
	}
	untuned, best := timed[0].whole, timed[1].whole
	m.UntunedSeconds, m.TunedSeconds, m.Paired = stats.Of(untuned).Median, stats.Of(best).Median, stats.PairedRatio(untuned, best)
	m.Verdict = m.Paired.Verdict()
	for k, task := range measuredTasks(p, timed) {
		m.Tasks[k].UntunedSeconds = task.UntunedSeconds
		if c.preferred[task.Workload] == nil {
			m.Tasks[k].TunedSeconds = task.TunedSeconds
		}
	}
	return m, nil
}

// executions holds the seconds of a package's executions: of each call, and of the whole model.
type executions struct {
	calls [][]float64
	whole []float64
}

// inTurns loads two packages and executes them in turns until end, to time their calls and, if whole is set, all of
// them together.
func inTurns(ctx context.Context, files []string, end time.Time, whole bool) (took [2]executions, err error) {
	models, err := loadToTime(files, extentsFlag{})
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, closeModels(models)) }()
	for turn := 0; turn < minCompareTurns || turn < maxCompareTurns && time.Now().Before(end); turn++ {
		for k, m := range models {
			if ctx.Err() != nil {
				return took, context.Cause(ctx)
			}
			if whole {
				seconds, err := m.Time(ctx, 1, 1)
				if err != nil {
					return took, err
				}
				took[k].whole = append(took[k].whole, seconds...)
			}
			calls, err := m.Profile()
			if err != nil {
				return took, err
			}
			took[k].calls = append(took[k].calls, calls)
		}
	}
	return took, nil
}

// measuredTasks returns the latency of each task within the model, given the executions of both packages. It is 0
// for a task that was not executed.
func measuredTasks(p *program.Program, took [2]executions) []progress.MeasuredTask {
	list := make([]progress.MeasuredTask, len(p.Tasks))
	typical := [2][]float64{stats.Parts(took[0].calls), stats.Parts(took[1].calls)}
	for k, task := range p.Tasks {
		perCall := func(calls []float64) float64 {
			sum, n := 0.0, 0
			for call, seconds := range calls {
				if p.Calls[call].Task == k && seconds >= 0 {
					sum, n = sum+seconds, n+1
				}
			}
			return sum / max(1, float64(n))
		}
		var turns [2][]float64
		for i := range turns {
			for _, calls := range took[i].calls {
				turns[i] = append(turns[i], perCall(calls))
			}
		}
		list[k] = progress.MeasuredTask{
			Task: task.Name, Workload: task.Workload.Digest(), UntunedSeconds: perCall(typical[0]), TunedSeconds: perCall(typical[1]),
			Paired: stats.PairedRatio(turns[0], turns[1]),
		}
	}
	return list
}

// keepDefaults prefers the default schedules of tasks whose median speed-up within the model is at most 1, and marks
// these tasks. It reports whether there are any.
func (t *tuneCommand) keepDefaults(ctx context.Context, name string, c *modelComparison, defaults, tuned []aot.Choice, tasks []progress.MeasuredTask) (any bool, err error) {
	for k := range tasks {
		m := &tasks[k]
		m.KeepsDefault = bytes.Equal(tuned[k].Trace, defaults[k].Trace)
		if m.KeepsDefault || tuned[k].Origin != bestschedule.FromRecord || m.Paired.Verdict() == stats.TooFewRounds {
			continue
		}
		if m.Ratio > 1 {
			c.faster[m.Workload] = true
			continue
		}
		reason := fmt.Sprintf("within %s it takes %.3gx the time of candidate %.12s, which is faster alone", name, m.Ratio, tuned[k].Record.Candidate)
		r, ok, err := t.preferenceFor(ctx, c, m.Workload, schedule.Digest(defaults[k].Trace), reason)
		if err != nil {
			return false, fmt.Errorf("keeping the default schedule of %s: %w", m.Task, err)
		}
		if ok {
			c.preferred[m.Workload], m.KeepsDefault, any = r, true, true
		}
	}
	return any, nil
}

// preferenceFor returns a record by which a candidate is preferred to the best one of its workload. It returns false
// if the candidate has no record, or is too slow alone.
func (t *tuneCommand) preferenceFor(ctx context.Context, c *modelComparison, workload, candidate, reason string) (preferred *tilthv1.Record, ok bool, err error) {
	best, err := c.records.Best(ctx, c.target.Fingerprint(), t.numerics.level, workload)
	if err != nil || len(best) == 0 {
		return nil, false, err
	}
	var latest *tilthv1.Record
	err = c.records.List(ctx, c.target.Fingerprint(), workload, func(r *tilthv1.Record) error {
		m := r.GetMeasurement()
		if m.GetCandidate().GetDigest() == candidate && records.Verified(m) && !m.GetAt().AsTime().Before(latest.GetMeasurement().GetAt().AsTime()) {
			latest = r
		}
		return nil
	})
	if err != nil || latest == nil {
		return nil, false, err
	}
	preferred, ok = records.Prefer(latest, best[0].GetMeasurement(), time.Now(), reason)
	return preferred, ok, nil
}

// chosen is a bestschedule.Lookup of the best records with the preferences of the comparison.
func (c *modelComparison) chosen(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error) {
	found, err := c.records.Best(ctx, target, numerics, workloads...)
	for k, r := range found {
		found[k] = cmp.Or(c.preferred[r.GetWorkloadDigest()], r)
	}
	return found, err
}

// compileFor compiles a model with the records that lookup finds, or default schedules if it is nil, and returns the
// schedules.
func (t *tuneCommand) compileFor(ctx context.Context, p *program.Program, c *modelComparison, lookup bestschedule.Lookup, output string) ([]aot.Choice, error) {
	choices, err := bestschedule.Choose(ctx, p, c.target, t.numerics.level, bestschedule.Sources{Lookup: lookup}, t.level.logger(t.stderr))
	if err != nil {
		return nil, err
	}
	objects, err := toolchain.OpenObjects(c.objects, 0)
	if err != nil {
		return nil, err
	}
	_, err = aot.Compile(ctx, p, aot.Options{
		Target: c.target, Toolchain: c.toolchain, Choices: choices, Parallel: runtime.NumCPU(), Output: output, Objects: objects, Apart: true,
	})
	return choices, err
}
