package client

import (
	"cmp"
	"context"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// JobFilter says which jobs are listed.
type JobFilter struct {
	// Limit is the most jobs; 0 = 100.
	Limit int
	// States are those that a job may be in; empty = all.
	States []tilthv1.JobState
	// Name is what a job's name contains, in any case; empty = anything.
	Name string
	// Owner is whose the jobs are; empty = anybody's.
	Owner string
}

func (f JobFilter) takes(j *tilthv1.Job) bool {
	return (f.Owner == "" || f.Owner == j.GetSpec().GetOwner()) && strings.Contains(strings.ToLower(j.GetSpec().GetName()), strings.ToLower(f.Name))
}

// ListJobs returns the jobs that pass a filter, newest first, and how many jobs of any kind were dropped or deleted.
func (c *Client) ListJobs(ctx context.Context, f JobFilter) (jobs []*tilthv1.Job, missing uint64, err error) {
	request := &tilthv1.ListJobsRequest{States: f.States}
	limit := cmp.Or(f.Limit, defaultJobsLimit)
	for {
		// A tracker from before there were pages goes by the limit.
		request.PageSize = uint32(limit - len(jobs))
		if f.Name != "" || f.Owner != "" { // which the tracker does not look for
			request.PageSize = itemsPerPage
		}
		request.Limit = request.PageSize
		page, err := call(ctx, request, c.jobs.ListJobs)
		if err != nil {
			return nil, 0, c.explain("list jobs", err)
		}
		missing = page.GetMissing()
		for _, j := range page.GetJobs() {
			if f.takes(j) && len(jobs) < limit {
				jobs = append(jobs, j)
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" || len(jobs) >= limit {
			return jobs, missing, nil
		}
	}
}

// defaultJobsLimit is how many jobs are listed unless another number is asked for.
const defaultJobsLimit = 100
