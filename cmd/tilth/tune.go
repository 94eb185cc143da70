package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/cmd/tilth/display"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/progress"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// partingTimeout bounds the last calls of an interrupted client.
const partingTimeout = 10 * time.Second

const tuneLong = `Tune the tasks of models: search for the fastest schedule of each and record it.

Without --tracker (or TILTH_TRACKER), tuning runs on this machine and writes to the
records file. With it, a farm does the work. An interrupt (Ctrl-C) ends the job and
keeps its measurements. Tuning again continues from the records.`

const tuneDetails = `If the connection to the tracker is lost, the command reconnects and continues. If
the farm lacks a device, a builder or a tuner, the command fails and names what is
missing, unless --wait is given. --time counts only while the farm can work.

Several models form one job. Tasks that they share are tuned once, and --weight sets how
much the latency of each model counts. --task-weights selects single tasks instead.

With --kernels, the search also draws candidates from hand-written kernels, each a
folder with C source and its knobs: see docs/own-kernels.md. They are verified and
measured like all other candidates. A farm tries them only if its builders allow it.

A second interrupt kills the process. With --no-transfer, tuning ignores earlier
records.`

type tuneCommand struct {
	*app
	tuneFlags
	followFlags
	costModel                 costModelFlag
	sandbox                   sandboxFlag
	board                     boardFlag
	target, compiler, records string
	tracker                   trackerFlags
	wait                      waitFlag
	machine                   machineFlags
	// given holds all flags.
	given *pflag.FlagSet
}

func newTune(a *app) *cobra.Command {
	t := &tuneCommand{app: a}
	c := &cobra.Command{
		Use: "tune MODEL.onnx...", Short: "Tune models, here or on a farm", Long: tuneLong,
		Example: `  tilth tune resnet18.onnx --time 5m
  tilth tune resnet18.onnx --trials 500 --tasks conv2d --log trials.jsonl
  tilth tune resnet18.onnx --tracker 127.0.0.1:9190 --device rack=3`,
		Args: cobra.MinimumNArgs(1), Annotations: map[string]string{helpDetails: tuneDetails},
	}
	t.given = c.Flags()
	t.tuneFlags.add(c)
	t.followFlags.add(a, c)
	t.level.add(c, slog.LevelWarn)
	targetFlag(c, &t.target, "target to tune for")
	recordsFlag(c, &t.records)
	t.tracker.add(c, "")
	t.wait.add(c)
	t.machine.add(c, "this machine or the records file")
	compilerFlag(c, &t.compiler)
	t.costModel.add(c)
	t.sandbox.add(c)
	t.board.add(c, "bare-metal board to measure on")
	t.tracker.excludes(c, "target", "records", "no-wait", "compiler", "cost-model", "sandbox", "board")
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if err := t.check(len(args)); err != nil {
			return err
		}
		if t.tracker.addr != "" {
			return t.remote(ctx, args)
		}
		if t.device != "" {
			return usagef("--device is for farms: name one with --tracker")
		}
		if t.wait.waits {
			return usagef("--wait is for farms: name one with --tracker")
		}
		return t.local(ctx, args)
	})
}

// local tunes in this process.
func (t *tuneCommand) local(ctx context.Context, paths []string) (err error) {
	machine, tc, o, err := t.prepare(ctx, paths)
	if err != nil {
		return err
	}
	file, cache, err := t.folders()
	if err != nil {
		return err
	}
	if err := t.readSeeds(file); err != nil {
		return err
	}
	models, err := t.costModel.models(cache)
	if err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return err
	}
	logs := &relay{to: t.stderr}
	log := t.level.logger(logs)
	work, expire := context.WithCancelCause(ctx)
	defer expire(nil)
	lock, err := t.machine.lock(log, expire)
	if err != nil {
		return err
	}
	there, err := t.board.open(ctx, t.compiler, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, there.close()) }()
	var rates []byte
	if there.Board == nil {
		if rates, err = measure(work, tc, machine, lock, cache, log); err != nil {
			return err
		}
	}
	f, err := t.startLocal(work, farm.LocalConfig{
		OwnKernels: len(t.kernels.list) > 0, Records: file, CacheDir: cache, Models: models, Target: machine, Toolchain: tc, Board: there.Board, Lock: lock, Sandbox: t.sandbox.mode,
		Version: version, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parting(f.Stop())) }()
	bound, cancel := f.Bound(work)
	defer cancel()
	defer context.AfterFunc(bound, logs.mute)()
	began := time.Now()
	j, err := f.Client.Submit(bound, jobclient.SpecFor(o, t.options(farm.LocalOwner), &client.Device{Target: machine, Machine: rates}))
	if err != nil {
		return err
	}
	summary := func(tally *progress.Tally) progress.Summary {
		s := progress.Summary{Records: file, MachineWait: machineWait(lock)}
		if tally.State != tilthv1.JobState_JOB_STATE_DONE || tally.BestSeconds() == 0 || there.Board != nil {
			return s
		}
		logs.mute() // agents warn that the job no longer wants what they hold
		compared, err := t.compareModels(bound, paths, modelComparison{
			target: machine, toolchain: tc, storage: o.Storage, records: recordsource.Of(f.Client), prefer: f.Prefer, lock: lock,
			objects: filepath.Join(cache, "objects"), scratch: f.Scratch(),
		}, time.Since(began)/compareShare)
		if s.Models = compared; err != nil {
			fmt.Fprintf(t.stderr, "the speed-up of the models is not known: %s\n", oneLine(err))
		}
		return s
	}
	if err := t.follow(ctx, bound, f.Client, j, logs, summary); err != nil {
		return err
	}
	var device *tilthv1.JobSpec
	if t.board.name != "" { // the target is the board's
		device = j.GetSpec()
	}
	t.printNext(ctx, paths, device)
	return nil
}

// folders returns the records file and the folder of caches, and makes missing folders.
func (t *tuneCommand) folders() (file, cache string, err error) {
	if file, err = recordsPath(t.records); err != nil {
		return "", "", err
	}
	if cache, err = cacheDir(); err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", "", fmt.Errorf("create the folder of records: %w: name another file with --records", err)
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", "", fmt.Errorf("create the folder of caches: %w: set XDG_CACHE_HOME", err)
	}
	return file, cache, nil
}

// machineWait returns how long and for whom a lock was waited for, or nil.
func machineWait(lock *hostlock.Lock) *progress.MachineWait {
	waited, holders := lock.Waited()
	if waited == 0 {
		return nil
	}
	w := &progress.MachineWait{Seconds: waited.Seconds(), Message: fmt.Sprintf("%.1f s, held by %s", waited.Seconds(), hostlock.Join(holders))}
	for _, h := range holders {
		w.Holders = append(w.Holders, progress.MachineHolder(h))
	}
	return w
}

// startLocal starts the services once no other local job uses the records file.
func (t *tuneCommand) startLocal(ctx context.Context, cfg farm.LocalConfig) (*farm.Local, error) {
	for began, waits := time.Now(), false; ; {
		f, err := farm.StartLocal(ctx, cfg)
		holders := hostlock.HoldersOf(cfg.Records, true)
		if !errors.Is(err, records.ErrLocked) || t.machine.noWait || time.Since(began) > maxTurn || slices.ContainsFunc(holders, isTracker) {
			if err != nil && len(holders) > 0 {
				err = fmt.Errorf("%w (held by %s)", err, hostlock.Join(holders))
			}
			return f, err
		}
		if !waits && len(holders) > 0 {
			waits = true
			fmt.Fprintf(t.stderr, "waiting: records file %s is in use by %s: this job follows it, within %s\n", cfg.Records, hostlock.Join(holders), humanize.Clock(maxTurn))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// isTracker reports whether a process is a tracker, which keeps its records file open for good.
func isTracker(h hostlock.Holder) bool { return strings.HasSuffix(h.Command, " tracker") }

// prepare returns the target, the compiler, and the objective: the models as programs for that target.
func (t *tuneCommand) prepare(ctx context.Context, paths []string) (*target.Target, *toolchain.Toolchain, *jobclient.Objective, error) {
	load := t.loader(paths)
	if _, err := load(nil); err != nil {
		return nil, nil, nil, err
	}
	named, err := t.board.target(t.target)
	if err != nil {
		return nil, nil, nil, err
	}
	machine, tc, err := t.low.localTarget(ctx, named, t.threads, t.compiler)
	if err != nil {
		return nil, nil, nil, err
	}
	if t.board.name != "" && machine.Objective != "" {
		return nil, nil, nil, usagef("--objective %s: meters measure this machine, not a board", machine.Objective)
	}
	if err := t.kernels.pin(ctx, t.compiler, true); err != nil {
		return nil, nil, nil, err
	}
	o, err := load(machine)
	if err != nil {
		return nil, nil, nil, err
	}
	if t.board.name == "" {
		if err := runsHere(machine); err != nil {
			return nil, nil, nil, fmt.Errorf("%w: tune on a farm that has such a device, with --tracker ADDR in place of --target", err)
		}
	}
	return machine, tc, o, nil
}

// measure measures the peak rates of the machine. On failure, latencies are shown without limits. It returns
// an error only if ctx ended.
func measure(ctx context.Context, tc *toolchain.Toolchain, machine *target.Target, lock *hostlock.Lock, cache string, log *slog.Logger) ([]byte, error) {
	rates, err := farm.MeasureRates(ctx, tc, []*target.Target{machine}, lock, cache)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, fmt.Errorf("measuring the machine's limits: %w", err)
	case err != nil:
		log.Warn("the machine's limits are unknown", "error", err)
		return nil, nil
	}
	return rates[0].Encode(), nil
}

// localTarget resolves a target name and a compiler on this machine.
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

// remote tunes on a farm.
func (t *tuneCommand) remote(ctx context.Context, paths []string) error {
	logs := &relay{to: t.stderr}
	c, err := t.tracker.dial(t.level.logger(logs))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := t.open(); err != nil {
		return err
	}
	if err := t.kernels.pin(ctx, "", false); err != nil {
		return err
	}
	patience := t.wait.patience(t.app)
	j, err := t.submit(ctx, c, paths, &patience)
	if err != nil {
		return t.wait.hint(err)
	}
	if err := t.follow(ctx, ctx, c, j, logs, func(*progress.Tally) progress.Summary { return progress.Summary{Tracker: t.tracker.addr} }); err != nil {
		return err
	}
	t.printNext(ctx, paths, j.GetSpec())
	return nil
}

// printNext prints how to compile the models, unless the command is quiet or was interrupted. spec is the job
// of a farm; nil for local work.
func (t *tuneCommand) printNext(ctx context.Context, paths []string, spec *tilthv1.JobSpec) {
	if ctx.Err() != nil || t.quiet {
		return
	}
	var device []string
	if spec != nil {
		words, describe, err := deviceFlags(spec, t.given)
		if err != nil {
			return // the target cannot be described
		}
		if device = words; describe != "" {
			fmt.Fprintf(t.stderr, "next: %s\n", describe)
		}
		if name := spec.GetTarget().GetToolchain(); !t.given.Changed("compiler") {
			compiler, found := compilerNamed(ctx, name)
			if compiler != "" {
				device = append(device, shellWord("--compiler="+compiler))
			}
			if !found {
				fmt.Fprintf(t.stderr, "next: install %s, by which the records are found; this machine lacks it\n", name)
			}
		}
	}
	for _, command := range nextCommands(paths, t.given, t.objective.model.own, device) {
		fmt.Fprintf(t.stderr, "next: %s\n", command)
	}
}

// follow shows the job until it ends, and ends it when ctx ends. bound ends earlier if the farm fails.
func (t *tuneCommand) follow(ctx, bound context.Context, c *client.Client, j *tilthv1.Job, logs *relay, where func(*progress.Tally) progress.Summary) error {
	t.kernels.warn(ctx, t.stderr, j.GetSpec())
	if !t.quiet {
		t.printSeeds(t.app, j.GetSpec())
	}
	w := t.newFollower(t.app, j, display.Budget{Trials: t.trials, Time: t.time})
	w.own = t.tracker.addr == ""
	logs.set(w.display)
	err := w.watch(bound, c)
	if ctx.Err() != nil {
		err = t.interrupt(ctx, c, w, j.GetId())
	} else if err != nil {
		err = t.abandon(ctx, bound, c, j.GetId(), err)
	}
	logs.set(t.stderr)
	if err := errors.Join(err, parting(w.close())); err != nil {
		return err
	}
	return w.finish(t.app, where(w.tally))
}

// abandon handles a job that cannot be followed any more, for example because its log is not writable. A
// local job ends. A farm's job continues, and the error explains how to follow or cancel it.
func (t *tuneCommand) abandon(ctx, bound context.Context, c *client.Client, id string, why error) error {
	if t.tracker.addr != "" && status.Code(why) == codes.NotFound {
		return fmt.Errorf("%w: it was deleted, or submitted after the backup that was restored since; submit it again", why)
	}
	if t.tracker.addr != "" {
		return fmt.Errorf("%w: job %s continues: 'tilth jobs watch %s --tracker %s' follows it, 'tilth jobs cancel %s --tracker %s' ends it",
			why, id, id, t.tracker.addr, id, t.tracker.addr)
	}
	if bound.Err() != nil && !errors.Is(why, hostlock.ErrInUse) { // the tracker has stopped; the next one on this records file closes the job
		return why
	}
	ctx, cancel := context.WithTimeout(ctx, partingTimeout)
	defer cancel()
	_, err := c.Cancel(ctx, id, "its client failed: "+why.Error())
	return errors.Join(why, err)
}

// interrupt ends the job and collects the remaining measurements.
func (t *tuneCommand) interrupt(ctx context.Context, c *client.Client, w *follower, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTimeout)
	defer cancel()
	if _, err := c.Cancel(ctx, id, "interrupted"); err != nil {
		return parting(fmt.Errorf("job %s continues: %w", id, err))
	}
	return w.watch(ctx, c)
}
