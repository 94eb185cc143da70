package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

// forever is the value of --wait without a duration.
const forever = "forever"

// waitFlag selects whether and how long to wait for missing agents.
type waitFlag struct {
	waits bool
	max   time.Duration // 0 means no limit
}

func (f *waitFlag) add(c *cobra.Command) {
	c.Flags().Var(f, "wait", "wait for missing agents")
	c.Flags().Lookup("wait").NoOptDefVal = forever
}

// String implements pflag.Value.
func (f *waitFlag) String() string {
	switch {
	case !f.waits:
		return ""
	case f.max == 0:
		return forever
	}
	return f.max.String()
}

// Set implements pflag.Value.
func (f *waitFlag) Set(text string) error {
	f.waits, f.max = true, 0
	if text == forever {
		return nil
	}
	var err error
	if f.max, err = time.ParseDuration(text); err != nil || f.max <= 0 {
		return fmt.Errorf("want a positive time, such as --wait=10m, or --wait alone")
	}
	return nil
}

// Type implements pflag.Value.
func (f *waitFlag) Type() string { return "duration" }

// patience returns the configuration, which prints reasons for waiting.
func (f *waitFlag) patience(a *app) client.Patience {
	return client.Patience{Waits: f.waits, Most: f.max, Report: func(message string) {
		fmt.Fprintln(a.stderr, "waiting: "+message)
	}}
}

// hint adds a hint at --wait to the error of a farm that lacks something.
func (f *waitFlag) hint(err error) error {
	var lacks *client.Lacking
	if errors.As(err, &lacks) && !f.waits {
		return fmt.Errorf("%w; --wait waits for it", err)
	}
	return err
}
