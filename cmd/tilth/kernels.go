package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
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
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
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

// kernelsFlag names folders of hand-written kernels.
type kernelsFlag struct {
	folders []string
	list    []*userkernel.Kernel
}

func (f *kernelsFlag) add(c *cobra.Command, what string) {
	c.Flags().StringArrayVar(&f.folders, "kernels", nil, what)
}

// read reads the folders.
func (f *kernelsFlag) read() error {
	if len(f.folders) > wire.MaxKernels {
		return usagef("--kernels: want at most %d folders", wire.MaxKernels)
	}
	f.list = nil
	for i, folder := range f.folders {
		k, err := userkernel.Read(folder)
		if err != nil {
			return err
		}
		for j, other := range f.list {
			if other.Name != k.Name && other.Number() == k.Number() {
				return usagef("--kernels: the names %s and %s are the same in records: rename one", other.Name, k.Name)
			}
			if other.Name == k.Name {
				return usagef("--kernels: %s and %s are both named %s: give one of them another name", f.folders[j], f.folders[i], k.Name)
			}
		}
		f.list = append(f.list, k)
	}
	return nil
}

// pin resolves the versions of the kernels' libraries on this machine, for all kernels or only for those
// without fixed versions.
func (f *kernelsFlag) pin(ctx context.Context, compiler string, all bool) error {
	for i, k := range f.list {
		if len(k.Libraries) == 0 || !all && k.Pinned() {
			continue
		}
		pinned, err := pinnedKernel(ctx, compiler, k)
		if err != nil && !all {
			return fmt.Errorf("%w; on a device that has them, 'tilth kernels check' prints the versions: %s may name them", err, userkernel.DescriptionFile)
		}
		if err != nil {
			return err
		}
		f.list[i] = pinned
	}
	return nil
}

// pinnedKernel returns a kernel with the versions of this machine's libraries.
func pinnedKernel(ctx context.Context, compiler string, k *userkernel.Kernel) (*userkernel.Kernel, error) {
	machine, tc, err := localTarget(ctx, "native", 0, compiler)
	if err != nil {
		return nil, err
	}
	return toolchain.PinLibraries(ctx, tc, machine, k)
}

// warn reports kernels that a job cannot use.
func (f *kernelsFlag) warn(ctx context.Context, w io.Writer, spec *tilthv1.JobSpec) {
	if len(f.list) == 0 {
		return
	}
	t, err := target.Decode(spec.GetTarget().GetDescriptor_())
	if err != nil {
		return // the tuner reports the error
	}
	numerics, err := schedule.ParseNumerics(spec.GetNumerics())
	if err != nil {
		return
	}
	var workloads []*expr.Workload
	for _, task := range spec.GetTasks() {
		if workload, err := expr.Parse(string(task.GetWorkload())); err == nil {
			workloads = append(workloads, workload)
		}
	}
	adder, err := tuner.NewKernelAdder(f.list, numerics)
	if err != nil {
		return
	}
	for _, reason := range adder.Unused(ctx, t, workloads) {
		fmt.Fprintf(w, "warning: %v: it is not tried\n", reason)
	}
}

// allows reports whether a record's kernel is one of the folders' kernels.
func (f *kernelsFlag) allows(k *userkernel.Kernel) bool {
	return slices.ContainsFunc(f.list, func(known *userkernel.Kernel) bool { return known.Digest() == k.Digest() })
}

// recordKernelFlags selects which hand-written kernels from records a package may use.
type recordKernelFlags struct {
	kernelsFlag
	all bool
	// fits returns why a kernel's libraries are not available on this machine.
	fits func(*userkernel.Kernel) error
	// warned holds the digests of kernels already reported as unfit.
	warned map[string]bool
}

func (f *recordKernelFlags) add(c *cobra.Command) {
	f.kernelsFlag.add(c, "`folder` of a hand-written kernel that records may use; repeatable")
	c.Flags().BoolVar(&f.all, "own-kernels", false, "use all hand-written kernels in records: their C source runs in your process")
}

// open reads the folders and prepares fits.
func (f *recordKernelFlags) open(ctx context.Context, compiler string, w io.Writer) error {
	if err := f.read(); err != nil {
		return err
	}
	f.warned = map[string]bool{}
	f.fits = func(k *userkernel.Kernel) error {
		_, err := pinnedKernel(ctx, compiler, k)
		if err != nil && !f.warned[k.Digest()] {
			f.warned[k.Digest()] = true
			fmt.Fprintf(w, "warning: a record is not used: %v\n", err)
		}
		return err
	}
	return f.pin(ctx, compiler, true)
}

// allows reports whether a kernel from a record may be used, for bestschedule.Sources.Own.
func (f *recordKernelFlags) allows(k *userkernel.Kernel) bool {
	if f.kernelsFlag.allows(k) {
		return true
	}
	return f.all && (len(k.Libraries) == 0 || f.fits(k) == nil)
}
