package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner"
)

// flagValues lists the flags that take one of a few values, or a comma-separated list of them. Others are refused.
var flagValues = map[string][]string{
	"dump":      {dumpGraph, dumpIR, dumpSource, dumpHTML},
	"log-level": {"debug", "info", "warn", "error"},
	"numerics":  {"strict", "default", "fast"},
	"objective": {latency, target.Energy},
	"role":      {"read-only", "client", "agent", "admin"},
	"sandbox":   {"required", "best-effort", "off"},
	"state":     {"reading", "queued", "running", "paused", "done", "failed", "cancelled"},
	"storage":   {"bfloat16", "float16", "float32"},
	"tuner":     tuner.Names(),
	"weights":   {"float", "int8", "int4"},
}

// checkedValue is the value of a flag with texts that check translates or refuses.
type checkedValue struct {
	pflag.Value
	check func(text string) (string, error)
}

// Set implements pflag.Value.
func (v checkedValue) Set(text string) error {
	text, err := v.check(text)
	if err != nil {
		return err
	}
	return v.Value.Set(text)
}

// checkValues has the flags of a command and its subcommands accept all forms of durations, and of flagValues nothing
// else.
func checkValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		values, byDefault := flagValues[f.Name], f.DefValue
		_, list := f.Value.(pflag.SliceValue)
		switch {
		case f.Value.Type() == "duration":
			f.Value = checkedValue{f.Value, func(text string) (string, error) {
				d, err := humanize.ParseDuration(text)
				return d.String(), err
			}}
		case values != nil && !list:
			f.Value = checkedValue{f.Value, func(text string) (string, error) {
				if text != byDefault && !slices.Contains(values, text) {
					return "", fmt.Errorf("want %s or %s", strings.Join(values[:len(values)-1], ", "), values[len(values)-1])
				}
				return text, nil
			}}
		}
	})
	for _, sub := range c.Commands() {
		checkValues(sub)
	}
}

// atLeast has flags of whole numbers and durations refuse values below a minimum, which is in milliseconds for
// durations, and numbers that no counter holds.
func atLeast(c *cobra.Command, least int64, names ...string) {
	for _, name := range names {
		f := c.Flags().Lookup(name)
		value, most := f.Value, int64(math.MaxInt32)
		switch {
		case value.Type() == "int64":
			most = math.MaxInt64
		case name == "threads":
			most = target.MaxThreads
		}
		f.Value = checkedValue{value, func(text string) (string, error) {
			if value.Type() == "duration" {
				if d, err := time.ParseDuration(text); err == nil && d < time.Duration(least)*time.Millisecond {
					return "", fmt.Errorf("want at least %v", time.Duration(least)*time.Millisecond)
				}
				return text, nil
			}
			n, err := strconv.ParseInt(text, 0, 64)
			switch {
			case err == nil && n < least:
				return "", fmt.Errorf("want at least %d", least)
			case err == nil && n > most:
				return "", fmt.Errorf("want at most %d", most)
			}
			return text, nil // the flag refuses what is no number
		}}
	}
}
