package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
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

// jobIDForm matches a job id or its prefix: a complete number, and optionally the life of the store or a prefix of it.
var jobIDForm = regexp.MustCompile(`^job-([0-9]{1,18})(?:-([a-z0-9]*))?$`)

const (
	// jobDigits is the minimum number of digits in an id.
	jobDigits = 8
	// maxCandidates is the number of jobs named by the error for an ambiguous prefix.
	maxCandidates = 5
	// candidatesPerPage and maxPages bound the search. There are about as many jobs with the same number as
	// the database has shards.
	candidatesPerPage, maxPages = 32, 64
)

// jobText is a parsed id or prefix: the number and the start of the life.
type jobText struct {
	number     uint64
	generation string
}

// parseJobText parses an id or its prefix. ok is false for other texts.
func parseJobText(text string) (t jobText, ok bool) {
	parts := jobIDForm.FindStringSubmatch(text)
	if parts == nil {
		return t, false
	}
	t.number, _ = strconv.ParseUint(parts[1], 10, 64) // at most 18 digits
	t.generation = parts[2]
	return t, true
}

// means reports whether an id matches the text.
func (t jobText) means(id string) bool {
	of, ok := parseJobText(id)
	return ok && of.number == t.number && strings.HasPrefix(of.generation, t.generation)
}

// after returns the lowest id of the next number. A listing in descending order that starts there begins with
// the text's number.
func (t jobText) after() string { return fmt.Sprintf("job-%0*d", jobDigits, t.number+1) }

// id returns the text as a complete id, padded to the usual number of digits.
func (t jobText) id() string {
	id := fmt.Sprintf("job-%0*d", jobDigits, t.number)
	if t.generation != "" {
		id += "-" + t.generation
	}
	return id
}

// FindJob returns the id of the only job that matches a text: job-NUMBER, with or without leading zeros,
// followed by a distinguishing prefix of the rest. Without a match it returns the text, so that the call that
// uses it reports that the job is missing or deleted.
func (c *Client) FindJob(ctx context.Context, text string) (string, error) {
	wanted, ok := parseJobText(text)
	if !ok {
		return text, nil
	}
	found, err := wanted.among(func(token string) (*tilthv1.ListJobsResponse, error) {
		request := &tilthv1.ListJobsRequest{PageSize: candidatesPerPage, PageToken: token}
		return call(ctx, request, c.jobs.ListJobs)
	})
	if err != nil {
		return "", c.explain("find job "+text, err)
	}
	return only(text, found)
}

// errManyPages means that the search exceeded maxPages.
var errManyPages = errors.New("too many jobs have this number: give the whole id")

// among returns the matching ids from pages in descending order. It stops after the text's number, or at one
// id more than an error names. An exact match is returned alone.
func (t jobText) among(page func(token string) (*tilthv1.ListJobsResponse, error)) (found []string, err error) {
	token := t.after()
	for range maxPages {
		response, err := page(token)
		if err != nil {
			return nil, err
		}
		for _, j := range response.GetJobs() {
			of, ok := parseJobText(j.GetId())
			switch {
			case ok && of.number < t.number:
				return found, nil
			case j.GetId() == t.id():
				return []string{j.GetId()}, nil
			case t.means(j.GetId()):
				found = append(found, j.GetId())
			}
		}
		if token = response.GetNextPageToken(); token == "" || len(found) > maxCandidates {
			return found, nil
		}
	}
	return nil, errManyPages
}

// only returns the single matching job, or the text itself if no job matches.
func only(text string, found []string) (string, error) {
	switch {
	case len(found) == 0:
		return text, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > maxCandidates:
		found = append(slices.Clone(found[:maxCandidates]), "...")
	}
	return "", fmt.Errorf("job %s: several ids begin so: give more of one of %s", text, strings.Join(found, ", "))
}

// errNoJobs means that there is no latest job.
var errNoJobs = errors.New("there is no job yet: submit one with 'tilth jobs submit MODEL.onnx'")

// LastJob returns the id of the job submitted last. Listings are ordered by number, and each shard has its
// own numbers, so the job may be on any page.
func (c *Client) LastJob(ctx context.Context) (string, error) {
	var last *tilthv1.Job
	request := &tilthv1.ListJobsRequest{PageSize: itemsPerPage}
	for {
		page, err := call(ctx, request, c.jobs.ListJobs)
		if err != nil {
			return "", c.explain("find the newest job", err)
		}
		last = newest(last, page.GetJobs())
		next := page.GetNextPageToken()
		if next == "" || next == request.GetPageToken() {
			break
		}
		request.PageToken = next
	}
	if last == nil {
		return "", errNoJobs
	}
	return last.GetId(), nil
}

// newest returns the job submitted last among last, which may be nil, and others. Ties go to the first.
func newest(last *tilthv1.Job, others []*tilthv1.Job) *tilthv1.Job {
	for _, j := range others {
		if last == nil || j.GetCreatedAt().AsTime().After(last.GetCreatedAt().AsTime()) {
			last = j
		}
	}
	return last
}
