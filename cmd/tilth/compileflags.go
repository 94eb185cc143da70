package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/farm"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
)

// lockFlags names the lock file of schedules, which makes compilations reproducible.
type lockFlags struct {
	path   string
	locked bool
}

func (f *lockFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "lock", "", "lock `file`: use its schedules, and add missing ones")
	c.Flags().BoolVar(&f.locked, "locked", false, "fail if the lock file lacks a schedule")
}

func (f *lockFlags) check() error {
	if f.locked && f.path == "" {
		return usagef("--locked: name the lock file with --lock")
	}
	return nil
}

// choices returns the schedules of the lock, completed by choose for missing tasks. The caller must write the
// returned lock, if any, after compiling.
func (f *lockFlags) choices(ctx context.Context, p *program.Program, t *target.Target, level schedule.Numerics,
	choose func(context.Context, *program.Program, *target.Target) ([]aot.Choice, error)) ([]aot.Choice, *bestschedule.LockFile, error) {
	if f.path == "" {
		choices, err := choose(ctx, p, t)
		return choices, nil, err
	}
	l, err := bestschedule.ReadLock(f.path)
	if err != nil {
		return nil, nil, err
	}
	choices, whole := make([]aot.Choice, len(p.Tasks)), l.Has(t.Fingerprint(), p.Tasks)
	if f.locked && !whole {
		return nil, nil, fmt.Errorf("%s lacks schedules of this model for %s: compile once without --locked to add them", f.path, t.Fingerprint())
	}
	if !whole {
		if choices, err = choose(ctx, p, t); err != nil {
			return nil, nil, err
		}
	}
	added, err := l.Apply(t.Fingerprint(), p.Tasks, level, choices)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	if added == 0 {
		return choices, nil, nil
	}
	return choices, l, nil
}

// confirmFlag requires foreign records to be measured on this machine before they are used.
type confirmFlag struct {
	wanted bool
	// confirmed and refused count the results.
	confirmed, refused int
	confirmer          *farm.Confirmer
	machine            machineFlags
}

func (f *confirmFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.wanted, "confirm", false, "measure foreign records on this machine before they are used")
	f.machine.add(c, "this machine (--confirm)")
}

// check rejects targets that do not run here.
func (f *confirmFlag) check(t *target.Target) error {
	if !f.wanted {
		return nil
	}
	if t.Objective != "" {
		return usagef("--confirm measures latency, and the objective is %s: leave one of them out", t.Objective)
	}
	machine, err := target.Native(0)
	if err != nil {
		return err
	}
	if err := t.RunsOn(machine); err != nil {
		return usagef("--confirm measures on this machine: %v", err)
	}
	return nil
}

// open returns the confirmation function for selection, or nil. Records in a file that contains their job
// were made here. With elsewhere, all records are foreign: those of a tracker or of a served export.
func (f *confirmFlag) open(t *target.Target, tc *toolchain.Toolchain, cache string, elsewhere bool, log *slog.Logger) (bestschedule.Confirm, error) {
	if !f.wanted {
		return nil, nil
	}
	lock, err := f.machine.lock(log, nil)
	if err != nil {
		return nil, err
	}
	if f.confirmer, err = farm.OpenConfirmer(farm.ConfirmConfig{Target: t, Toolchain: tc, CacheDir: cache, Lock: lock}); err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *tilthv1.Record, s, standard *schedule.Schedule) (float64, string, error) {
		if !elsewhere && r.GetJobId() != "" {
			return 0, "", nil
		}
		found, err := f.confirmer.Confirm(ctx, s, standard)
		switch {
		case err != nil:
		case found.Refused != "":
			f.refused++
		default:
			f.confirmed++
		}
		return found.Seconds, found.Refused, err
	}, nil
}

func (f *confirmFlag) close(err error) error {
	if f.confirmer == nil {
		return err
	}
	return errors.Join(err, f.confirmer.Close())
}

// sourceFlags selects C source as the output and limits its memory.
type sourceFlags struct {
	format string
	// ram and flash limit C source, size a package.
	ram, flash, size byteSize
}

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "", "output format: package, or c, an archive of C source (default package, or c for microcontrollers)")
	c.Flags().Var(&f.ram, "max-ram", "with --format c: RAM limit, a `size` such as 256KiB")
	c.Flags().Var(&f.size, "max-size", "limit of the package, a `size` such as 100MiB; algorithms that need larger weights give way")
	c.Flags().Var(&f.flash, "max-flash", "with --format c: limit of code and weights, a `size` such as 1MiB")
}

// apply sets the options of a compilation for a target. C names use the prefix, or else the model's name.
func (f *sourceFlags) apply(o *aot.Options, t *target.Target, model string) error {
	switch f.format {
	case "":
		o.C = !t.HasOperatingSystem()
	case "c":
		o.C = true
	case "package":
		if !t.HasOperatingSystem() {
			return usagef("--format package: %s has no operating system that would load one; leave --format out", t.Model())
		}
	default:
		return usagef("--format %s: want package or c", f.format)
	}
	if !o.C && f.ram+f.flash > 0 {
		return usagef("--max-ram and --max-flash are for C source: add --format c")
	}
	if o.C && f.size > 0 {
		return usagef("--max-size is for packages: --max-ram and --max-flash limit C source")
	}
	o.Limits = aot.Limits{RAMBytes: int64(f.ram), FlashBytes: int64(f.flash), PackageBytes: int64(f.size)}
	if o.C && o.Prefix == "" {
		o.Prefix = aot.PrefixOf(model)
	}
	return nil
}

// byteSize is a flag value in bytes.
type byteSize int64

// Type implements pflag.Value.
func (*byteSize) Type() string { return "size" }

// String implements pflag.Value.
func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	digits, unit := text, int64(1)
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if number, found := strings.CutSuffix(text, u.name); found {
			digits, unit = number, u.bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return fmt.Errorf("want a size in bytes, optionally with KiB, MiB or GiB, such as 256KiB")
	}
	*b = byteSize(n * unit)
	return nil
}

// extentsFlag sets the open extents of packages.
type extentsFlag struct{ chosen map[string]int64 }

func (f *extentsFlag) add(c *cobra.Command) {
	c.Flags().StringToInt64Var(&f.chosen, "shape", nil, "open extents of the package for random inputs, such as `sequence=37` (default the maximum)")
}

// of returns the extents for packages. It rejects extents that no package leaves open or that are out of bounds.
func (f *extentsFlag) of(manifests ...*aot.Manifest) (map[string]int64, error) {
	for _, name := range slices.Sorted(maps.Keys(f.chosen)) {
		n, known := f.chosen[name], false
		for _, m := range manifests {
			for _, e := range m.Extents {
				if e.Name != name {
					continue
				}
				known = true
				if err := e.Check(n); err != nil {
					return nil, usagef("--shape %s=%d: %w", name, n, err)
				}
			}
		}
		if !known {
			return nil, usagef("--shape %s=%d: no package leaves that open; 'tilth compile --shape %s=1..%d' makes one that does", name, n, name, max(n, 2))
		}
	}
	return f.chosen, nil
}
