package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

// forever is --wait without a time.
const forever = "forever"

// waitFlag says whether to wait for a farm that lacks a device, a builder or a tuner, and how long.
type waitFlag struct {
	waits bool
	most  time.Duration // 0 = as long as it takes
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
	case f.most == 0:
		return forever
	}
	return f.most.String()
}

// Set implements pflag.Value.
func (f *waitFlag) Set(text string) error {
	f.waits, f.most = true, 0
	if text == forever {
		return nil
	}
	var err error
	if f.most, err = time.ParseDuration(text); err != nil || f.most <= 0 {
		return fmt.Errorf("want a positive time, such as --wait=10m, or --wait alone")
	}
	return nil
}

// Type implements pflag.Value.
func (f *waitFlag) Type() string { return "duration" }

// patience tells people what is waited for.
func (f *waitFlag) patience(a *app) client.Patience {
	return client.Patience{Waits: f.waits, Most: f.most, Tell: func(message string) {
		fmt.Fprintln(a.stderr, "waits: "+message)
	}}
}

// hint adds that what a farm lacks may be waited for.
func (f *waitFlag) hint(err error) error {
	var lacks *client.Lacking
	if errors.As(err, &lacks) && !f.waits {
		return fmt.Errorf("%w; --wait waits for it", err)
	}
	return err
}
