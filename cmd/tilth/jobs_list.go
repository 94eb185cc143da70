package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func newJobsList(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	var filter client.JobFilter
	var states []string
	c := &cobra.Command{
		Use: "list", Short: "List jobs, newest first",
		Long: `List jobs, newest first. Ended jobs are kept for a time ('tilth tracker --keep-jobs');
deleted ones are counted on standard error. POSITION is the place of a job that waits for
its turn, by its owner's share of the farm and its priority.`,
		Example: "  tilth jobs list\n  tilth jobs list --state queued,running --json\n  tilth jobs list --name resnet",
		Args:    cobra.NoArgs,
	}
	flags.add(c)
	tableFlags(a, c, &asJSON)
	c.Flags().IntVar(&filter.Limit, "limit", 100, "number of jobs at most")
	atLeast(c, 1, "limit")
	c.Flags().StringVar(&filter.Name, "name", "", "only jobs with a name that contains this `text`, ignoring case")
	c.Flags().StringVar(&filter.Owner, "owner", "", "only jobs of this `owner`; see 'tilth jobs owners'")
	c.Flags().StringSliceVar(&states, "state", nil, "only jobs in these `states`: reading, queued, running, paused, done, failed, cancelled")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		var err error
		if filter.States, err = parseStates(states); err != nil {
			return err
		}
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		jobs, missing, err := tracker.ListJobs(ctx, filter)
		if err != nil {
			return err
		}
		var rows []jobRow
		for _, j := range jobs {
			rows = append(rows, newJobRow(j))
		}
		table := humanize.NewTable("JOB", "NAME", "OWNER", ">PRIORITY", "STATE", "POSITION", ">PROGRESS", ">TRIALS", ">LATENCY", ">SPEED-UP", "CREATED", "REASON").Times("CREATED").States("STATE").
			Optional("PRIORITY", "CREATED", "POSITION", "TRIALS", "LATENCY")
		if missing > 0 && !asJSON {
			fmt.Fprintf(a.stderr, "%d jobs that had ended are no longer kept ('tilth tracker --keep-jobs', 'tilth jobs delete'); their records are\n", missing)
		}
		return list(a.stdout, asJSON, rows, table, func(r jobRow) []string {
			return []string{
				r.Job, r.Name, r.Owner, strconv.Itoa(r.Priority), r.State, r.Wait.position(), humanize.Percent(r.Progress, 1), strconv.Itoa(r.Trials),
				humanize.Seconds(r.BestSeconds), humanize.Ratio(r.UntunedSeconds, r.BestSeconds), cmp.Or(r.Created, humanize.Missing), r.why(),
			}
		})
	})
}

func parseStates(names []string) ([]tilthv1.JobState, error) {
	var states []tilthv1.JobState
	for _, name := range names {
		state := tilthv1.JobState(tilthv1.JobState_value["JOB_STATE_"+strings.ToUpper(name)])
		if state == tilthv1.JobState_JOB_STATE_UNSPECIFIED {
			return nil, usagef("--state %s: want reading, queued, running, paused, done, failed or cancelled", name)
		}
		if !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	return states, nil
}

// seconds formats an optional latency.
func seconds(s *float64) string {
	if s == nil {
		return humanize.Missing
	}
	return humanize.Seconds(*s)
}

func times(weight float64) string { return fmt.Sprintf("%gx", weight) }
