package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// shareFlags configures how owners share a farm.
type shareFlags struct {
	jobs, trials, artifacts int
	stored                  int
	ownerStored             map[string]int
	ownerWeight             map[string]string
	ownerJobs               map[string]int
	ownerTrials             map[string]int
	ownerArtifacts          map[string]int
}

const mib = 1 << 20

func (f *shareFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.jobs, "max-jobs", 1000, "unfinished jobs of an owner (0 = no limit)")
	c.Flags().IntVar(&f.trials, "max-trials", 0, "trials of all jobs of an owner (0 = no limit)")
	c.Flags().IntVar(&f.artifacts, "max-artifacts", 0, "MiB of artifacts of an owner that may wait for devices (0 = no limit)")
	c.Flags().IntVar(&f.stored, "max-stored", 2048, "MiB of specifications and events of an owner's jobs; the oldest ended jobs are deleted (0 = no limit)")
	c.Flags().StringToStringVar(&f.ownerWeight, "owner-weight", nil, "shares of agents' time of some `owners`, e.g. ana=3,ci=0.5; others have 1")
	c.Flags().StringToIntVar(&f.ownerJobs, "owner-max-jobs", nil, "--max-jobs of some `owners`, e.g. ci=50")
	c.Flags().StringToIntVar(&f.ownerTrials, "owner-max-trials", nil, "--max-trials of some `owners`")
	c.Flags().StringToIntVar(&f.ownerArtifacts, "owner-max-artifacts", nil, "--max-artifacts of some `owners`")
	c.Flags().StringToIntVar(&f.ownerStored, "owner-max-stored", nil, "--max-stored of some `owners`")
}

// shares parses and validates the flags.
func (f *shareFlags) shares() (policy.Shares, error) {
	shares := policy.Shares{
		Default: policy.Share{Jobs: f.jobs, Trials: f.trials, ArtifactBytes: int64(f.artifacts) * mib, StoredBytes: int64(f.stored) * mib},
		Owners:  map[string]policy.Share{},
	}
	for _, limit := range []struct {
		flag  string
		value int
	}{{"max-jobs", f.jobs}, {"max-trials", f.trials}, {"max-artifacts", f.artifacts}, {"max-stored", f.stored}} {
		if err := checkLimit(limit.flag, fmt.Sprint(limit.value), limit.value); err != nil {
			return policy.Shares{}, err
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(f.ownerWeight)) {
		text := f.ownerWeight[owner]
		weight, err := strconv.ParseFloat(text, 64)
		if err != nil || !(weight > 0) || math.IsInf(weight, 0) {
			return policy.Shares{}, usagef("--owner-weight %s=%s: want a positive number", owner, text)
		}
		share := shares.Owners[owner]
		share.Weight = weight
		shares.Owners[owner] = share
	}
	for _, limit := range []struct {
		flag   string
		values map[string]int
		set    func(s *policy.Share, value int)
	}{
		{"owner-max-jobs", f.ownerJobs, func(s *policy.Share, n int) { s.Jobs = n }},
		{"owner-max-trials", f.ownerTrials, func(s *policy.Share, n int) { s.Trials = n }},
		{"owner-max-artifacts", f.ownerArtifacts, func(s *policy.Share, n int) { s.ArtifactBytes = int64(n) * mib }},
		{"owner-max-stored", f.ownerStored, func(s *policy.Share, n int) { s.StoredBytes = int64(n) * mib }},
	} {
		for _, owner := range slices.Sorted(maps.Keys(limit.values)) {
			value := limit.values[owner]
			if err := checkLimit(limit.flag, fmt.Sprintf("%s=%d", owner, value), value); err != nil {
				return policy.Shares{}, err
			}
			share := shares.Owners[owner]
			limit.set(&share, value)
			shares.Owners[owner] = share
		}
	}
	return shares, nil
}

func checkLimit(flag, text string, value int) error {
	if value < 0 || value > math.MaxInt32 {
		return usagef("--%s %s: want a number of at least 0", flag, text)
	}
	return nil
}
