package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "owners", Short: "List the owners who share the farm, with their use and quotas",
		Long: `List the owners of jobs that have not ended: their share, the work that waits for an
agent, and their use of quotas. ENDED counts ended jobs that are kept; the oldest are
deleted beyond the limit ('tilth tracker --help-all').`,
		Example: "  tilth jobs owners",
		Args:    cobra.NoArgs,
	}
	tableFlags(a, c, &asJSON)
	return a.onTracker(c, &flags, func(ctx context.Context, tracker *client.Client, _ []string) error {
		owners, err := tracker.Owners(ctx)
		if err != nil {
			return err
		}
		var rows []ownerRow
		for _, o := range owners {
			rows = append(rows, newOwnerRow(o))
		}
		table := humanize.NewTable("OWNER", ">WEIGHT", ">WAITING", ">JOBS", ">TRIALS", ">ARTIFACTS", ">ENDED", ">STORED")
		return list(a.stdout, asJSON, rows, table, func(r ownerRow) []string {
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
