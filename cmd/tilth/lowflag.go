package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/compiler/target"
)

// lowFlag is --objective, the quantity to minimize.
type lowFlag struct {
	name  string
	given *pflag.Flag
}

const latency = "latency"

func (f *lowFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "objective", latency, "what to minimize: latency, or energy (the device needs a meter)")
	f.given = c.Flags().Lookup("objective")
}

func (f *lowFlag) check() error {
	if f.name != latency && f.name != target.Energy {
		return usagef("--objective %s: want latency or energy", f.name)
	}
	return nil
}

// objective returns the name used by targets.
func (f *lowFlag) objective() string {
	if f.name == latency {
		return ""
	}
	return f.name
}

// of returns a target with the objective. The objective of a target file applies unless the flag is given.
func (f *lowFlag) of(t *target.Target) (*target.Target, error) {
	if f.given.Changed || t.Objective == "" {
		t = t.WithObjective(f.objective())
	}
	return t, t.Check()
}
