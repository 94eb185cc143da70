package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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
