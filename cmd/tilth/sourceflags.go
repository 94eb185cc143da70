package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sourceFlags selects C source as the output and limits its memory.
type sourceFlags struct {
	format string
	// ram and flash limit C source, size a package.
	ram, flash, size byteSize
}

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "", "output format: package, or c, an archive of C source (default package, or c for microcontrollers)")
	c.Flags().Var(&f.ram, "max-ram", "with --format c: RAM limit, a `size` such as 256KiB")
	c.Flags().Var(&f.size, "max-size", "limit of the package, a `size` such as 100MiB; algorithms that need larger weights give way")
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
	if o.C && f.size > 0 {
		return usagef("--max-size is for packages: --max-ram and --max-flash limit C source")
	}
	o.Limits = aot.Limits{RAMBytes: int64(f.ram), FlashBytes: int64(f.flash), PackageBytes: int64(f.size)}
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
		return fmt.Errorf("want a size in bytes, optionally with KiB, MiB or GiB, such as 256KiB")
	}
	*b = byteSize(n * unit)
	return nil
}

// extentsFlag sets the open extents of packages.
type extentsFlag struct{ chosen map[string]int64 }

func (f *extentsFlag) add(c *cobra.Command) {
	c.Flags().StringToInt64Var(&f.chosen, "shape", nil, "open extents of the package for random inputs, such as `sequence=37` (default the maximum)")
}

// of returns the extents for packages. It rejects extents that no package leaves open or that are out of bounds.
func (f *extentsFlag) of(manifests ...*aot.Manifest) (map[string]int64, error) {
	for _, name := range slices.Sorted(maps.Keys(f.chosen)) {
		n, known := f.chosen[name], false
		for _, m := range manifests {
			for _, e := range m.Extents {
				if e.Name != name {
					continue
				}
				known = true
				if err := e.Check(n); err != nil {
					return nil, usagef("--shape %s=%d: %w", name, n, err)
				}
			}
		}
		if !known {
			return nil, usagef("--shape %s=%d: no package leaves that open; 'tilth compile --shape %s=1..%d' makes one that does", name, n, name, max(n, 2))
		}
	}
	return f.chosen, nil
}
