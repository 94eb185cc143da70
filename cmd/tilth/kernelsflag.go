package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
)

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
