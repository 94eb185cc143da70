package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/compiler/target"
)

// objectiveFlag is --objective, the quantity to minimize.
type objectiveFlag struct {
	name  string
	given *pflag.Flag
}

const latency = "latency"

func (f *objectiveFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "objective", latency, "what to minimize: latency, or energy (the device needs a meter)")
	f.given = c.Flags().Lookup("objective")
}

func (f *objectiveFlag) check() error {
	if f.name != latency && f.name != target.Energy {
		return usagef("--objective %s: want latency or energy", f.name)
	}
	return nil
}

// objective returns the name used by targets.
func (f *objectiveFlag) objective() string {
	if f.name == latency {
		return ""
	}
	return f.name
}

// of returns a target with the objective. The objective of a target file applies unless the flag is given.
func (f *objectiveFlag) of(t *target.Target) (*target.Target, error) {
	if f.given.Changed || t.Objective == "" {
		t = t.WithObjective(f.objective())
	}
	return t, t.Check()
}
