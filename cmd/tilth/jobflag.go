package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

// jobFlag lets a command take the newest job in place of one that is named, and ids by their beginnings.
type jobFlag struct{ last bool }

func (f *jobFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.last, "last", false, "the job that was submitted last, by whomever, in place of JOB")
}

// args wants a job's id, unless --last is given.
func (f *jobFlag) args(c *cobra.Command, args []string) error {
	if f.last && len(args) > 0 {
		return usagef("%q and --last name a job each: give either JOB or --last", args[0])
	}
	if f.last {
		return nil
	}
	return cobra.ExactArgs(1)(c, args)
}

// argsBefore is args for a command that takes other arguments behind the job's id.
func (f *jobFlag) argsBefore(c *cobra.Command, args []string) error {
	if !f.last {
		return cobra.MinimumNArgs(1)(c, args)
	}
	for _, arg := range args {
		if !strings.Contains(arg, ".") { // as the ids of batches do
			return usagef("%q and --last name a job each: give either JOB or --last", arg)
		}
	}
	return nil
}

// findJobs are the ids of jobs that are named by ids or by their beginnings.
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

// find is the id of the job that is meant, and the arguments behind it.
func (f *jobFlag) find(ctx context.Context, tracker *client.Client, args []string) (id string, rest []string, err error) {
	if f.last {
		id, err = tracker.LastJob(ctx)
		return id, args, err
	}
	id, err = tracker.FindJob(ctx, args[0])
	return id, args[1:], err
}
