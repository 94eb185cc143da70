package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
)

// confirmFlag requires foreign records to be measured on this machine before they are used.
type confirmFlag struct {
	wanted bool
	// confirmed and refused count the results.
	confirmed, refused int
	confirmer          *farm.Confirmer
}

func (f *confirmFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.wanted, "confirm", false, "measure foreign records on this machine before they are used")
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
	lock, err := hostlock.Announced(log)
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
