package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/config"
)

// service gives a service its work, and has its flags set from a file and from the environment too. Check, when there
// is one, says what is wrong with them together.
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

// callerVariables are the flags that every command which calls a tracker takes from the environment too.
var callerVariables = []string{"tls-ca", "tls-cert", "tls-key", "token-file"}

// fromEnvironment sets the flags by which a command reaches its tracker. TILTH_TRACKER stands for --tracker, but
// yields to a flag that keeps the work here.
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
	if !calls || c.Flags().Lookup(config.FileFlag) != nil { // a service has all of its flags set so
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
