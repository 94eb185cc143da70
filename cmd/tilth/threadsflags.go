package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/signing"
)

// mostCPU bounds the numbers of processors.
const mostCPU = 1 << 16

// threadsFlags say which threads run a package.
type threadsFlags struct {
	count int
	cpus  string
	list  []int
}

func (f *threadsFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.count, "threads", 0, "threads that run the package, at most those that it was compiled for (default all of them)")
	c.Flags().StringVar(&f.cpus, "cpus", "", "processors that they may run on: `numbers` and ranges, e.g. 0,2-5 (default any)")
}

// check reads the flags. Those of a farm's device are its runner's business.
func (f *threadsFlags) check(onFarm bool) (err error) {
	if f.count < 0 {
		return usagef("--threads %d: want a positive number", f.count)
	}
	if onFarm && (f.count > 0 || f.cpus != "") {
		return usagef("--threads and --cpus are for packages that run here, not on a farm")
	}
	if f.list, err = parseCPUs(f.cpus); err != nil {
		return usagef("--cpus %s: %w", f.cpus, err)
	}
	return nil
}

// load opens a package on the threads, signed by the key if there is one.
func (f *threadsFlags) load(path string, key *signing.PublicKey) (*aot.Model, error) {
	machine, err := target.Native(0)
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	return aot.Loader{Machine: machine, Threads: aot.Threads{Count: f.count, CPUs: f.list}, Key: key}.Load(path)
}

// parseCPUs reads numbers and ranges.
func parseCPUs(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		low, err := strconv.Atoi(from)
		high := low
		if err == nil && isRange {
			high, err = strconv.Atoi(to)
		}
		if err != nil || low < 0 || high < low || high > mostCPU {
			return nil, fmt.Errorf("want numbers and ranges, such as 0,2-5")
		}
		for cpu := low; cpu <= high; cpu++ {
			list = append(list, cpu)
		}
	}
	return list, nil
}
