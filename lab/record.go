package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/bench/replay"
	"github.com/tilth-dev/tilth/runner"
)

const recordLong = `Record sets for 'lab search': build, verify and time, on this machine,
every candidate of a part of each task's space. Each task gets a file.

Without a model, the tasks are a standard selection from the built-in models. An
interrupted recording is resumed; tasks that have a set are skipped.

With --sample, a file has some schedules of a task's whole space instead: random ones
and some that searches meet. Cost models learn more from many tasks.`

// recordFlags configures a recording.
type recordFlags struct {
	choice           replay.Choice
	target, compiler string
	numerics         string
	sandbox          string
	threads          int
	launcher         string
}

func newRecord() *cobra.Command {
	var f recordFlags
	r := &replay.Recorder{Limits: runner.Limits{Candidate: recordPatience}, Batch: wire.BatchCandidates, Finalists: recordFinalists, Rounds: recordRounds}
	c := &cobra.Command{
		Use: "record [MODEL]...", Short: "Measure all candidates of tasks, or a sample of them", Long: recordLong,
		Example: "  lab record -o sets\n  lab record resnet18.onnx --tasks 2,5 -o sets\n" +
			"  lab record all --sample 64 --every 2 -o survey",
	}
	c.Flags().StringVar(&f.choice.Tasks, "tasks", "", "tasks to record: `numbers`, ranges and parts of names (default all)")
	c.Flags().IntVar(&f.choice.Every, "every", 1, "record only every Nth of these tasks")
	c.Flags().Float64Var(&f.choice.MaxGFLOP, "most-gflop", 0, "skip tasks with more operations (default none)")
	c.Flags().StringVar(&f.numerics, "numerics", schedule.Default.String(), "algorithms allowed: strict, default or fast")
	c.Flags().StringVarP(&r.Dir, "output", "o", "sets", "`folder` of the sets")
	targetFlags(c, &f.target, &f.compiler)
	c.Flags().IntVar(&f.threads, "threads", 1, "threads a kernel runs on")
	c.Flags().IntVar(&r.Size.Fewest, "fewest", 2000, "least number of schedules of a set, where the space has as many")
	c.Flags().IntVar(&r.Size.Most, "most", 2600, "greatest number of schedules of a set")
	c.Flags().IntVar(&r.Pilot, "pilot", 160, "trials in the whole space beforehand, which help to choose the part")
	c.Flags().IntVar(&r.Sample, "sample", 0, "measure this many schedules of each whole space instead of all of a part")
	c.Flags().StringVar(&f.launcher, "launcher", "", "`command` that starts the process that measures, e.g. 'chrt -f 20'")
	c.Flags().StringVar(&f.sandbox, "sandbox", string(sandbox.BestEffort), "isolation of candidates: required, best-effort or off")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.threads < 1 || r.Size.Fewest < 1 || r.Size.Most < r.Size.Fewest || r.Pilot < 0 || r.Sample < 0 {
			return fmt.Errorf("--threads %d, --fewest %d, --most %d, --pilot %d, --sample %d: want positive numbers, and no fewer at most than at least",
				f.threads, r.Size.Fewest, r.Size.Most, r.Pilot, r.Sample)
		}
		numerics, err := schedule.ParseNumerics(f.numerics)
		if err != nil {
			return fmt.Errorf("--numerics: %w", err)
		}
		mode, err := parseMode(f.sandbox)
		if err != nil {
			return fmt.Errorf("--sandbox: %w", err)
		}
		machine, tc, err := localTarget(c.Context(), f.target, f.threads, f.compiler)
		if err != nil {
			return err
		}
		storage, err := registry.Storage(machine, numerics, array.Invalid)
		if err != nil {
			return err
		}
		tasks, err := f.choice.Load(args, storage)
		if err != nil {
			return err
		}
		r.Compiler = &builder.Compiler{Toolchain: tc, Parallel: runtime.NumCPU(), CandidateTime: recordPatience}
		r.Target, r.Numerics, r.Launcher = machine, numerics, strings.Fields(f.launcher)
		r.Progress = func(p replay.Progress) {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %d of %d, %d failed, best %s\n", p.Task, p.Measured, p.Candidates, p.Failed, humanize.Seconds(p.Best))
		}
		return recordAll(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), r, mode, tasks)
	}
	return c
}

const (
	// recordPatience is generous, because candidates may have to wait on a busy machine.
	recordPatience = time.Minute
	// recordFinalists are remeasured in turns.
	recordFinalists, recordRounds = 48, 8
	recordCacheBytes              = 256 << 20
)

// recordAll records tasks in a sandbox and writes the path of each set.
func recordAll(ctx context.Context, out, progress io.Writer, r *replay.Recorder, mode sandbox.Mode, tasks []replay.Task) (err error) {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "tilth-record-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	box, err := sandbox.Open(mode, filepath.Join(scratch, "sandbox"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	for _, missing := range box.Missing() {
		fmt.Fprintf(progress, "the sandbox lacks a layer: %s\n", missing)
	}
	if r.Compiler.Cache, err = builder.OpenCache(filepath.Join(scratch, "objects"), recordCacheBytes); err != nil {
		return err
	}
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return err
	}
	r.Sandbox, r.Lock, r.Scratch = box, lock, scratch
	failed := 0
	for _, t := range tasks {
		path, err := r.Record(ctx, t)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil: // continue with the other tasks
			fmt.Fprintln(progress, err)
			failed++
		default:
			fmt.Fprintln(out, path)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tasks were not recorded, for the reasons above: the same command tries them again", failed, len(tasks))
	}
	return nil
}

// localTarget returns the target of a name on this machine, with its toolchain.
func localTarget(ctx context.Context, name string, threads int, compiler string) (*target.Target, *toolchain.Toolchain, error) {
	machine, err := registry.Target(name, threads)
	if err != nil {
		return nil, nil, err
	}
	tc, err := toolchain.Find(ctx, compiler)
	if err != nil {
		return nil, nil, err
	}
	return machine.WithToolchain(tc.For(machine)), tc, nil
}

// targetFlags adds --target and --compiler.
func targetFlags(c *cobra.Command, target, compiler *string) {
	c.Flags().StringVar(target, "target", "native", "target to record for, or whose exported records are read")
	c.Flags().StringVar(compiler, "compiler", os.Getenv(toolchain.Variable),
		"C compiler, a `path` or name (default $"+toolchain.Variable+", else the newest clang, else gcc)")
}

// parseMode parses the name of a mode of the sandbox.
func parseMode(name string) (sandbox.Mode, error) {
	if m := sandbox.Mode(name); slices.Contains([]sandbox.Mode{sandbox.Required, sandbox.BestEffort, sandbox.Off}, m) {
		return m, nil
	}
	return "", fmt.Errorf("sandbox mode %q: want required, best-effort or off", name)
}
