package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/config"
)

// service sets the work of a service, whose flags also come from a file and the environment. check, if not
// nil, validates them together.
func (a *app) service(c *cobra.Command, check func() error, work func(ctx context.Context) error) *cobra.Command {
	var file string
	var checkOnly bool
	c.Flags().StringVar(&file, config.FileFlag, "", "YAML `file` of settings: keys are the names of flags; TILTH_... variables override it, and flags override both")
	c.Flags().BoolVar(&checkOnly, config.CheckFlag, false, "print all settings and where each comes from, and exit")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		a.serves = true
		settings, err := config.Apply(c.Flags(), os.LookupEnv)
		if err != nil {
			return usagef("%w", err)
		}
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		if checkOnly {
			return config.Write(a.stdout, settings)
		}
		return work(ctx)
	})
}

// callerVariables lists the flags of commands that call a tracker and that also come from the environment.
var callerVariables = []string{"tls-ca", "tls-cert", "tls-key", "token-file"}

// fromEnvironment sets the flags that connect a command to its tracker. TILTH_TRACKER replaces --tracker,
// unless a flag requests local work.
func fromEnvironment(c *cobra.Command) error {
	if key := c.Flags().Lookup(verifyKeyFlag); key != nil {
		if key.Changed && key.Value.String() == "" {
			return usagef("--%s is empty: name the file of a key, or leave the flag out", verifyKeyFlag)
		}
		if err := config.Environment(c.Flags(), os.LookupEnv, verifyKeyFlag); err != nil {
			return usagef("%w", err)
		}
	}
	tracker := c.Flags().Lookup("tracker")
	calls := tracker != nil || c.Flags().Lookup(callerVariables[0]) != nil
	if !calls || c.Flags().Lookup(config.FileFlag) != nil { // services set all their flags from it
		return nil
	}
	names := callerVariables
	if tracker != nil && !slices.ContainsFunc(tracker.Annotations[localFlags], c.Flags().Changed) {
		names = append([]string{tracker.Name}, names...)
	}
	if err := config.Environment(c.Flags(), os.LookupEnv, names...); err != nil {
		return usagef("%w", err)
	}
	return nil
}
