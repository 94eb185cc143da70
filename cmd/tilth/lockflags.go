package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
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
	added, err := l.Obey(t.Fingerprint(), p.Tasks, level, choices)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	if added == 0 {
		return choices, nil, nil
	}
	return choices, l, nil
}

// write writes the lock if it is not nil.
func (f *lockFlags) write(l *bestschedule.LockFile) error {
	if l == nil {
		return nil
	}
	return l.Write(f.path)
}
