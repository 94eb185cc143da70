package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/bench/replay/record"
	"github.com/tilth-dev/tilth/runner"
)

const benchRecordLong = `Record sets for 'tilth bench search': build, verify and time, on this machine,
every candidate of a part of each task's space. Each task gets a file.

Without a model, the tasks are a standard selection from the built-in models. An
interrupted recording is resumed; tasks that have a set are skipped.

With --sample, a file has some schedules of a task's whole space instead: random ones
and some that searches meet. Cost models learn more from many tasks.`

// recordFlags say what to record and how.
type recordFlags struct {
	choice                       recordChoice
	numerics                     numericsFlag
	target, compiler, dir        string
	threads, fewest, most, pilot int
	sample                       int
	launcher                     string
	sandbox                      sandboxFlag
}

func newBenchRecord(a *app) *cobra.Command {
	var f recordFlags
	c := &cobra.Command{
		Use: "record [MODEL]...", Short: "Measure all candidates of tasks, or a sample of them", Long: benchRecordLong,
		Example: "  tilth bench record -o sets\n  tilth bench record resnet18.onnx --tasks 2,5 -o sets\n" +
			"  tilth bench record all --sample 64 --every 2 -o survey",
	}
	f.choice.add(c)
	f.numerics.add(c)
	c.Flags().StringVarP(&f.dir, "output", "o", "sets", "`folder` of the sets")
	targetFlag(c, &f.target, "what to record for")
	c.Flags().IntVar(&f.threads, "threads", 1, "threads a kernel runs on")
	c.Flags().IntVar(&f.fewest, "fewest", 2000, "least number of schedules of a set, where the space has as many")
	c.Flags().IntVar(&f.most, "most", 2600, "greatest number of schedules of a set")
	c.Flags().IntVar(&f.pilot, "pilot", 160, "trials in the whole space beforehand, which help to choose the part")
	c.Flags().IntVar(&f.sample, "sample", 0, "measure this many schedules of each whole space instead of all of a part")
	c.Flags().StringVar(&f.launcher, "launcher", "", "`command` that starts the process that measures, e.g. 'chrt -f 20'")
	f.sandbox.add(c)
	compilerFlag(c, &f.compiler)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if f.threads < 1 || f.fewest < 1 || f.most < f.fewest || f.pilot < 0 || f.sample < 0 {
			return usagef("--threads %d, --fewest %d, --most %d, --pilot %d, --sample %d: want positive numbers, and no fewer at most than at least",
				f.threads, f.fewest, f.most, f.pilot, f.sample)
		}
		if err := f.numerics.check(); err != nil {
			return err
		}
		machine, tc, err := localTarget(ctx, f.target, f.threads, f.compiler)
		if err != nil {
			return err
		}
		storage, err := registry.Storage(machine, f.numerics.level, array.Invalid)
		if err != nil {
			return err
		}
		tasks, err := f.choice.load(args, storage)
		if err != nil {
			return err
		}
		return f.record(ctx, a, machine, tc, tasks)
	})
}

const (
	// recordPatience is generous, since a machine that does other things meanwhile makes a candidate wait.
	recordPatience = time.Minute
	// Finalists are measured again in turns.
	recordFinalists, recordRounds = 48, 8
	recordCacheBytes              = 256 << 20
)

func (f *recordFlags) record(ctx context.Context, a *app, machine *target.Target, tc *toolchain.Toolchain, tasks []record.Task) (err error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "tilth-record-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	box, err := sandbox.Open(f.sandbox.mode, filepath.Join(scratch, "sandbox"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	for _, missing := range box.Missing() {
		fmt.Fprintf(a.stderr, "the sandbox lacks a layer: %s\n", missing)
	}
	cache, err := builder.OpenCache(filepath.Join(scratch, "objects"), recordCacheBytes)
	if err != nil {
		return err
	}
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return err
	}
	r := &record.Recorder{
		Compiler: &builder.Compiler{Toolchain: tc, Cache: cache, Parallel: runtime.NumCPU(), CandidateTime: recordPatience},
		Target:   machine, Numerics: f.numerics.level, Limits: runner.Limits{Candidate: recordPatience}, Launcher: strings.Fields(f.launcher), Sandbox: box,
		Lock: lock, Dir: f.dir, Scratch: scratch, Size: record.PartOptions{Fewest: f.fewest, Most: f.most},
		Sample: f.sample, Batch: wire.BatchCandidates, Pilot: f.pilot, Finalists: recordFinalists, Rounds: recordRounds,
		Progress: func(p record.Progress) {
			fmt.Fprintf(a.stderr, "%s: %d of %d, %d failed, best %s\n", p.Task, p.Measured, p.Candidates, p.Failed, show.Seconds(p.Best))
		},
	}
	failed := 0
	for _, t := range tasks {
		path, err := r.Record(ctx, t)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil: // what is wrong with one task takes nothing from the others
			fmt.Fprintln(a.stderr, err)
			failed++
		default:
			fmt.Fprintln(a.stdout, path)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tasks were not recorded, for the reasons above: the same command tries them again", failed, len(tasks))
	}
	return nil
}
