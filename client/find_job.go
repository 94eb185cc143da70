package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// jobIDForm is a job's id or its beginning: a number, and the life of the store in which it was submitted.
var jobIDForm = regexp.MustCompile(`^job-([0-9]{1,18})(-[a-z0-9]*)?$`)

const (
	// jobDigits is how many digits the number has at least.
	jobDigits = 8
	// mostCandidates is how many jobs the error for an ambiguous beginning names.
	mostCandidates = 5
)

// FindJob returns the id of the only job whose id is a text or begins so. Where there is none it returns the text: the
// call that takes it says that there is no such job, or that it was deleted.
func (c *Client) FindJob(ctx context.Context, text string) (string, error) {
	parts := jobIDForm.FindStringSubmatch(text)
	if parts == nil {
		return text, nil
	}
	request := &tilthv1.ListJobsRequest{PageSize: mostCandidates + 1, PageToken: after(parts[1])}
	page, err := call(ctx, request, c.jobs.ListJobs)
	if err != nil {
		return "", c.explain("find job "+text, err)
	}
	var found []string
	for _, j := range page.GetJobs() {
		if id := j.GetId(); strings.HasPrefix(id, text) {
			found = append(found, id)
		}
	}
	return only(text, found)
}

// after is the least id that comes after all that begin with a number's digits: a listing from there, newest first,
// begins with these.
func after(digits string) string {
	missing := max(jobDigits-len(digits), 0)
	n, _ := strconv.ParseUint(digits+strings.Repeat("9", missing), 10, 64) // digits, and no more than fit
	return fmt.Sprintf("job-%0*d", jobDigits, n+1)
}

// only is the one of the jobs found for a text that is meant by it; the text itself when there is none.
func only(text string, found []string) (string, error) {
	switch {
	case len(found) == 0 || slices.Contains(found, text):
		return text, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > mostCandidates:
		found = append(found[:mostCandidates], "...")
	}
	return "", fmt.Errorf("job %s: several ids begin so: give more of one of %s", text, strings.Join(found, ", "))
}

// errNoJobs says that there is no newest job.
var errNoJobs = errors.New("there is no job yet: submit one with 'tilth jobs submit MODEL.onnx'")

// LastJob returns the id of the newest job.
func (c *Client) LastJob(ctx context.Context) (string, error) {
	jobs, _, err := c.ListJobs(ctx, JobFilter{Limit: 1})
	if err == nil && len(jobs) == 0 {
		err = errNoJobs
	}
	if err != nil {
		return "", err
	}
	return jobs[0].GetId(), nil
}
