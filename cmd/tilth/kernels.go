package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

const kernelsCheckLong = `Check the folder of a hand-written kernel: its description and, with --model, which tasks
it computes, how many knob settings are legal for each, and whether its default compiles
and computes the correct result. The kernel runs in a sandbox, in turns with the default
schedule.`

// maxCounted bounds the knob settings that are enumerated.
const maxCounted = 1 << 17

// kernelsCheck is 'tilth kernels check'.
type kernelsCheck struct {
	*app
	model            modelFlags
	path             string
	target, compiler string
	threads          int
	numerics         numericsFlag
	log              logFlag
	machine          machineFlags
}

func newKernelsCheck(a *app) *cobra.Command {
	k := &kernelsCheck{app: a}
	c := &cobra.Command{
		Use: "check DIR", Short: "Check the folder of a hand-written kernel", Long: kernelsCheckLong,
		Example: `  tilth kernels check examples/own-kernel
  tilth kernels check examples/own-kernel --model mlp.onnx --threads 1`,
		Args: cobra.ExactArgs(1),
	}
	k.model.add(c)
	c.Flags().StringVar(&k.path, "model", "", "`model` with the tasks to check the kernel for")
	targetFlag(c, &k.target, "what the kernel is for")
	c.Flags().IntVar(&k.threads, "threads", 0, "threads a kernel runs on (default the physical cores)")
	atLeast(c, 0, "threads")
	compilerFlag(c, &k.compiler)
	k.numerics.add(c)
	k.log.add(c, slog.LevelWarn)
	k.machine.add(c, "this machine")
	return a.leaf(c, func(ctx context.Context, args []string) error { return k.run(ctx, args[0]) })
}

func (k *kernelsCheck) run(ctx context.Context, folder string) error {
	kernel, err := userkernel.Read(folder)
	if err != nil {
		return err
	}
	if len(kernel.Libraries) > 0 {
		if kernel, err = pinnedKernel(ctx, k.compiler, kernel); err != nil {
			return err
		}
	}
	fmt.Fprintf(k.stdout, "kernel %s, sha256 %s, %s, numerics %s\n", kernel.Name, kernel.Digest(), kernel.Arch, kernel.Numerics)
	for _, l := range kernel.Libraries {
		fmt.Fprintf(k.stdout, "calls %s\n", l)
	}
	if k.path == "" {
		return nil
	}
	machine, tc, err := localTarget(ctx, k.target, k.threads, k.compiler)
	if err != nil {
		return err
	}
	if err := runsHere(machine); err != nil {
		return err
	}
	if err := kernel.Runs(machine); err != nil {
		return err
	}
	p, err := k.model.load(k.path, array.Storage{})
	if err != nil {
		return err
	}
	return k.tasks(ctx, kernel, p, machine, tc)
}

// tasks checks the kernel for each task that it computes. It fails if the kernel is wrong for one, or computes none.
func (k *kernelsCheck) tasks(ctx context.Context, kernel *userkernel.Kernel, p *program.Program, t *target.Target, tc *toolchain.Toolchain) (err error) {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	lock, err := k.machine.lock(k.log.logger(k.stderr), nil)
	if err != nil {
		return err
	}
	confirmer, err := farm.OpenConfirmer(farm.ConfirmConfig{Target: t, Toolchain: tc, CacheDir: cache, Lock: lock})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, confirmer.Close()) }()
	table := humanize.NewTable(">#", "TASK", ">LEGAL", ">LATENCY", ">SCHEDULE", "DEFAULT CHOICE")
	matched, wrong := 0, 0
	for _, task := range jobclient.Join(jobclient.Model{Tasks: p.Tasks, Weight: 1}) {
		if _, ok := kernel.Match(task.Workload); !ok {
			continue
		}
		matched++
		row, right, err := k.task(ctx, confirmer, kernel, task, t)
		if err != nil {
			return err
		}
		if !right {
			wrong++
		}
		table.Row(row...)
	}
	if matched == 0 {
		return fmt.Errorf("kernel %s computes no task of %s: 'tilth kernels tasks %s' prints what they compute", kernel.Name, k.path, k.path)
	}
	if err := table.Write(k.stdout); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("kernel %s: the default choice is not usable for %d of %d tasks", kernel.Name, wrong, matched)
	}
	return nil
}

// task returns the row of a task.
func (k *kernelsCheck) task(ctx context.Context, c *farm.Confirmer, kernel *userkernel.Kernel, task jobclient.Task, t *target.Target) (row []string, right bool, err error) {
	base, err := registry.Space(task.Workload, t, k.numerics.level)
	if err != nil {
		return nil, false, err
	}
	legal, looked, all := tuner.CountKernelPoints(base, kernel, maxCounted)
	count := fmt.Sprintf("%d of %d", legal, looked)
	if !all {
		count += "+"
	}
	row = []string{strconv.Itoa(task.Index), task.Name, count, "", "", ""}
	s, standard, err := ownDefault(ctx, base, kernel, k.numerics.level)
	if err != nil {
		row[5] = err.Error()
		return row, false, nil
	}
	found, err := c.Confirm(ctx, s, standard)
	if err != nil {
		return nil, false, err
	}
	row[5] = s.Own.Point()
	if found.Seconds == 0 {
		row[5] += ": " + found.Refused
		return row, false, nil
	}
	row[3], row[4] = humanize.Seconds(found.Seconds), humanize.Seconds(found.DefaultSeconds)
	return row, true, nil
}

// ownDefault returns the kernel's first candidate and the default schedule.
func ownDefault(ctx context.Context, base *searchspace.Space, kernel *userkernel.Kernel, numerics schedule.Numerics) (first, standard *schedule.Schedule, err error) {
	adder, err := tuner.NewKernelAdder([]*userkernel.Kernel{kernel}, numerics)
	if err != nil {
		return nil, nil, err
	}
	s, err := adder.Add(ctx, base)
	if err != nil {
		return nil, nil, err
	}
	points := s.Defaults()
	last := points[len(points)-1]
	if s == base || !s.Own(last) {
		if reasons := adder.Unused(ctx, base.Target, []*expr.Workload{base.Workload}); len(reasons) > 0 {
			return nil, nil, reasons[0]
		}
		return nil, nil, errors.New("no legal choice was found")
	}
	if first, err = s.Apply(last); err != nil {
		return nil, nil, err
	}
	standard, err = s.Apply(s.Default())
	return first, standard, err
}

func newKernelsTasks(a *app) *cobra.Command {
	var flags modelFlags
	c := &cobra.Command{
		Use: "tasks MODEL.onnx...", Short: "Print what the tasks of models compute, as kernels name it",
		Example: "  tilth kernels tasks mlp.onnx",
		Args:    cobra.MinimumNArgs(1),
	}
	flags.add(c)
	return a.leaf(c, func(_ context.Context, args []string) error {
		var models []jobclient.Model
		err := flags.loadAll(args, array.Storage{}, func(_ string, p *program.Program) error {
			models = append(models, jobclient.Model{Tasks: p.Tasks, Weight: 1})
			return nil
		})
		if err != nil {
			return err
		}
		for _, t := range jobclient.Join(models...) {
			if _, err := fmt.Fprintf(a.stdout, "# task %d: %s\n%s\n", t.Index, t.Name, t.Workload.Text()); err != nil {
				return err
			}
		}
		return nil
	})
}
