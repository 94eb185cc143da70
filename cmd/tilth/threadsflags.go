package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/signing"
)

// threadsFlags selects the threads that run a package.
type threadsFlags struct {
	count int
	cpus  string
	list  []int
}

func (f *threadsFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.count, "threads", 0, "threads that run the package, at most those that it was compiled for (default all of them)")
	c.Flags().StringVar(&f.cpus, "cpus", "", "processors that they may run on: `numbers` and ranges, e.g. 0,2-5 (default any)")
}

// check parses the flags. They do not apply to a farm's device, whose runner decides.
func (f *threadsFlags) check(onFarm bool) (err error) {
	if f.count < 0 {
		return usagef("--threads %d: want a positive number", f.count)
	}
	if onFarm && (f.count > 0 || f.cpus != "") {
		return usagef("--threads and --cpus are for packages that run here, not on a farm")
	}
	if f.list, err = target.ParseCPUs(f.cpus); err != nil {
		return usagef("--cpus %s: %w", f.cpus, err)
	}
	return nil
}

// load opens a package on the threads and verifies its signature if there is a key.
func (f *threadsFlags) load(path string, key *signing.PublicKey) (*aot.Model, error) {
	loader, err := aot.Here()
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	loader.Threads, loader.Key = aot.Threads{Count: f.count, CPUs: f.list}, key
	return loader.Load(path)
}
