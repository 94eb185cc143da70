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
	var filter client.JobFilter
	var states []string
	c := &cobra.Command{
		Use: "list", Short: "List jobs, newest first",
		Long: `List jobs, newest first. Ended jobs are kept for a time ('tilth tracker --keep-jobs');
deleted ones are counted on standard error. POSITION is the place of a job that waits for
its turn, by its owner's share of the farm and its priority.`,
		Example: "  tilth jobs list\n  tilth jobs list --state queued,running --json\n  tilth jobs list --name resnet",
	}
	a.tableFlags(c)
	c.Flags().IntVar(&filter.Limit, "limit", 100, "number of jobs at most")
	atLeast(c, 1, "limit")
	c.Flags().StringVar(&filter.Name, "name", "", "only jobs with a name that contains this `text`, ignoring case")
	c.Flags().StringVar(&filter.Owner, "owner", "", "only jobs of this `owner`; see 'tilth jobs owners'")
	c.Flags().StringSliceVar(&states, "state", nil, "only jobs in these `states`: reading, queued, running, paused, done, failed, cancelled")
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, _ []string) (err error) {
		if filter.States, err = parseStates(states); err != nil {
			return err
		}
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
		if missing > 0 && !a.asJSON {
			fmt.Fprintf(a.stderr, "%d jobs that had ended are no longer kept ('tilth tracker --keep-jobs', 'tilth jobs delete'); their records are\n", missing)
		}
		return list(a, rows, table, func(r jobRow) []string {
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

// ownerRow is an owner in a listing; a limit of 0 means none.
type ownerRow struct {
	Owner            string  `json:"owner"`
	Weight           float64 `json:"weight"`
	Waiting          int     `json:"waiting"`
	Jobs             int     `json:"jobs"`
	MaxJobs          int     `json:"max_jobs"`
	Trials           int     `json:"trials"`
	MaxTrials        int     `json:"max_trials"`
	ArtifactBytes    int64   `json:"artifact_bytes"`
	MaxArtifactBytes int64   `json:"max_artifact_bytes"`
	EndedJobs        int     `json:"ended_jobs"`
	KeepJobs         int     `json:"keep_jobs"`
	StoredBytes      int64   `json:"stored_bytes"`
	MaxStoredBytes   int64   `json:"max_stored_bytes"`
}

func newOwnerRow(o *tilthv1.Owner) ownerRow {
	return ownerRow{
		Owner: o.GetName(), Weight: o.GetWeight(), Waiting: int(o.GetWaiting()), Jobs: int(o.GetJobs()), MaxJobs: int(o.GetMaxJobs()),
		Trials: int(o.GetTrials()), MaxTrials: int(o.GetMaxTrials()),
		ArtifactBytes: int64(o.GetArtifactBytes()), MaxArtifactBytes: int64(o.GetMaxArtifactBytes()),
		EndedJobs: int(o.GetEndedJobs()), KeepJobs: int(o.GetKeepJobs()),
		StoredBytes: int64(o.GetStoredBytes()), MaxStoredBytes: int64(o.GetMaxStoredBytes()),
	}
}

func newJobsOwners(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "owners", Short: "List the owners who share the farm, with their use and quotas",
		Long: `List the owners of open jobs: their share, the work that waits for an
agent, and their use of quotas. ENDED counts ended jobs that are kept; the oldest are
deleted beyond the limit ('tilth tracker --help-all').`,
		Example: "  tilth jobs owners",
	}
	a.tableFlags(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, _ []string) error {
		owners, err := tracker.Owners(ctx)
		if err != nil {
			return err
		}
		var rows []ownerRow
		for _, o := range owners {
			rows = append(rows, newOwnerRow(o))
		}
		table := humanize.NewTable("OWNER", ">WEIGHT", ">WAITING", ">JOBS", ">TRIALS", ">ARTIFACTS", ">ENDED", ">STORED")
		return list(a, rows, table, func(r ownerRow) []string {
			return []string{
				r.Owner, fmt.Sprintf("%g", r.Weight), strconv.Itoa(r.Waiting),
				ofLimit(strconv.Itoa(r.Jobs), strconv.Itoa(r.MaxJobs), r.MaxJobs > 0),
				ofLimit(strconv.Itoa(r.Trials), strconv.Itoa(r.MaxTrials), r.MaxTrials > 0),
				ofLimit(humanize.Bytes(r.ArtifactBytes), humanize.Bytes(r.MaxArtifactBytes), r.MaxArtifactBytes > 0),
				ofLimit(strconv.Itoa(r.EndedJobs), strconv.Itoa(r.KeepJobs), r.KeepJobs > 0),
				ofLimit(humanize.Bytes(r.StoredBytes), humanize.Bytes(r.MaxStoredBytes), r.MaxStoredBytes > 0),
			}
		})
	})
}

// ofLimit formats a value and its limit, if any.
func ofLimit(has, may string, limited bool) string {
	if limited {
		return has + " of " + may
	}
	return has
}
