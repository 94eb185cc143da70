package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sourceFlags selects C source as the output and limits its memory.
type sourceFlags struct {
	format     string
	ram, flash byteSize
}

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "", "output format: package, or c, an archive of C source (default package, or c for microcontrollers)")
	c.Flags().Var(&f.ram, "max-ram", "with --format c: RAM limit, a `size` such as 256KiB")
	c.Flags().Var(&f.flash, "max-flash", "with --format c: limit of code and weights, a `size` such as 1MiB")
}

// apply sets the options of a compilation for a target. C names use the prefix, or else the model's name.
func (f *sourceFlags) apply(o *aot.Options, t *target.Target, model string) error {
	switch f.format {
	case "":
		o.C = !t.HasOperatingSystem()
	case "c":
		o.C = true
	case "package":
		if !t.HasOperatingSystem() {
			return usagef("--format package: %s has no operating system that would load one; leave --format out", t.Model())
		}
	default:
		return usagef("--format %s: want package or c", f.format)
	}
	if !o.C && f.ram+f.flash > 0 {
		return usagef("--max-ram and --max-flash are for C source: add --format c")
	}
	o.Limits = aot.Limits{RAMBytes: int64(f.ram), FlashBytes: int64(f.flash)}
	if o.C && o.Prefix == "" {
		o.Prefix = aot.PrefixOf(model)
	}
	return nil
}

// byteSize is a flag value in bytes.
type byteSize int64

// Type implements pflag.Value.
func (*byteSize) Type() string { return "size" }

// String implements pflag.Value.
func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	digits, unit := text, int64(1)
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if number, found := strings.CutSuffix(text, u.name); found {
			digits, unit = number, u.bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return fmt.Errorf("want a number of bytes, also with KiB, MiB or GiB behind it, e.g. 256KiB")
	}
	*b = byteSize(n * unit)
	return nil
}
