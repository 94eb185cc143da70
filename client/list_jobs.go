package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// JobFilter selects jobs to list.
type JobFilter struct {
	// Limit is the maximum number of jobs; 0 means 100.
	Limit int
	// States lists the accepted states; empty means all.
	States []tilthv1.JobState
	// Name is a case-insensitive substring of the job's name; empty matches all.
	Name string
	// Owner is the owner of the jobs; empty matches all.
	Owner string
}

func (f JobFilter) takes(j *tilthv1.Job) bool {
	return (f.Owner == "" || f.Owner == j.GetSpec().GetOwner()) && strings.Contains(strings.ToLower(j.GetSpec().GetName()), strings.ToLower(f.Name))
}

// ListJobs returns the jobs that match a filter, newest first, and the number of dropped or deleted jobs of any kind.
func (c *Client) ListJobs(ctx context.Context, f JobFilter) (jobs []*tilthv1.Job, missing uint64, err error) {
	request := &tilthv1.ListJobsRequest{States: f.States}
	limit := cmp.Or(f.Limit, defaultJobsLimit)
	for {
		// Trackers without pagination use the limit.
		request.PageSize = uint32(limit - len(jobs))
		if f.Name != "" || f.Owner != "" { // the tracker does not filter by them
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

// defaultJobsLimit is the default of JobFilter.Limit.
const defaultJobsLimit = 100

// Backup writes a consistent copy of the tracker's records file to w and returns its size. After an error,
// the written data are incomplete.
func (c *Client) Backup(ctx context.Context, w io.Writer) (sizeBytes uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.admin.BackupStore(ctx, &tilthv1.BackupStoreRequest{})
	if err != nil {
		return 0, c.explain("back up the records", err)
	}
	sum := sha256.New()
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return sizeBytes, fmt.Errorf("back up the records of %s: truncated after %d bytes: try again", c.addr, sizeBytes)
		}
		if err != nil {
			return sizeBytes, c.explain("back up the records", err)
		}
		if part.GetDigest() != "" {
			if part.GetSizeBytes() != sizeBytes || part.GetDigest() != hex.EncodeToString(sum.Sum(nil)) {
				return sizeBytes, fmt.Errorf("back up the records of %s: checksum mismatch: try again", c.addr)
			}
			return sizeBytes, nil
		}
		sum.Write(part.GetData())
		sizeBytes += uint64(len(part.GetData()))
		if _, err := w.Write(part.GetData()); err != nil {
			return sizeBytes, err
		}
	}
}

// Prune removes obsolete records of the tracker.
func (c *Client) Prune(ctx context.Context, request *tilthv1.PruneRecordsRequest) (removed, kept uint64, err error) {
	response, err := c.admin.PruneRecords(ctx, request)
	if err != nil {
		return 0, 0, c.explain("prune the records", err)
	}
	return response.GetRemoved(), response.GetKept(), nil
}
