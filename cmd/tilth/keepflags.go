package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// keepFlags configures how long a tracker keeps ended jobs.
type keepFlags struct{ jobs []string }

// keepDefault is the default of --keep-jobs.
var keepDefault = []string{"1000", "2160h"}

func (f *keepFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.jobs, "keep-jobs", keepDefault,
		"ended jobs to keep: a `number` per owner, a time since their end, or both, as in 200,720h; what is left out has no limit. Records stay")
}

// keep parses and validates the flag.
func (f *keepFlags) keep() (policy.Retention, error) {
	keep := policy.Retention{Jobs: -1, Age: -1}
	for _, text := range f.jobs {
		n, notNumber := strconv.Atoi(text)
		age, notTime := time.ParseDuration(text)
		switch {
		case notNumber == nil && n > 0 && keep.Jobs < 0:
			keep.Jobs = n
		case notNumber != nil && notTime == nil && age > 0 && keep.Age < 0:
			keep.Age = age
		default:
			return keep, usagef("--keep-jobs %s: want a number of at least 1, a time such as 720h, or one of each", text)
		}
	}
	return keep, nil
}
