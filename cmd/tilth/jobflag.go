package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

// jobFlag accepts the latest job instead of a named one, and prefixes of ids.
type jobFlag struct{ last bool }

func (f *jobFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.last, "last", false, "use the most recent job instead of JOB")
}

// args requires a job id, unless --last is given.
func (f *jobFlag) args(c *cobra.Command, args []string) error {
	if f.last && len(args) > 0 {
		return usagef("%q and --last name a job each: give either JOB or --last", args[0])
	}
	if f.last {
		return nil
	}
	return cobra.ExactArgs(1)(c, args)
}

// argsBefore is args for commands with further arguments after the job id.
func (f *jobFlag) argsBefore(c *cobra.Command, args []string) error {
	if !f.last {
		return cobra.MinimumNArgs(1)(c, args)
	}
	for _, arg := range args {
		if !strings.Contains(arg, ".") { // batch ids contain dots
			return usagef("%q and --last name a job each: give either JOB or --last", arg)
		}
	}
	return nil
}

// findJobs resolves ids or prefixes of ids.
func findJobs(ctx context.Context, tracker *client.Client, texts []string) (ids []string, err error) {
	for _, text := range texts {
		id, err := tracker.FindJob(ctx, text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// find returns the job's id and the remaining arguments.
func (f *jobFlag) find(ctx context.Context, tracker *client.Client, args []string) (id string, rest []string, err error) {
	if f.last {
		id, err = tracker.LastJob(ctx)
		return id, args, err
	}
	id, err = tracker.FindJob(ctx, args[0])
	return id, args[1:], err
}
