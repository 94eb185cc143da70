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

// jobIDForm is a job's id or its beginning: a whole number, and the life of the store in which it was submitted, or
// the beginning of that.
var jobIDForm = regexp.MustCompile(`^job-([0-9]{1,18})(?:-([a-z0-9]*))?$`)

const (
	// jobDigits is how many digits an id's number has at least.
	jobDigits = 8
	// mostCandidates is how many jobs the error for an ambiguous beginning names.
	mostCandidates = 5
	// candidatesPerPage is how many jobs are asked for at once, and mostPages how often: jobs of one number are about
	// as many as a database has shards.
	candidatesPerPage, mostPages = 32, 64
)

// jobText is what a user gives for a job's id: its number, and how the life behind it begins.
type jobText struct {
	number uint64
	life   string
}

// parseJobText reads an id or its beginning; ok is false for other texts.
func parseJobText(text string) (t jobText, ok bool) {
	parts := jobIDForm.FindStringSubmatch(text)
	if parts == nil {
		return t, false
	}
	t.number, _ = strconv.ParseUint(parts[1], 10, 64) // digits, and no more than fit
	t.life = parts[2]
	return t, true
}

// means says whether an id has the text's number, and a life that begins as the text's.
func (t jobText) means(id string) bool {
	of, ok := parseJobText(id)
	return ok && of.number == t.number && strings.HasPrefix(of.life, t.life)
}

// after is the least id of the next number: a listing from there, highest number first, begins with the text's.
func (t jobText) after() string { return fmt.Sprintf("job-%0*d", jobDigits, t.number+1) }

// id is the whole id that the text would be, with as many digits as ids have.
func (t jobText) id() string {
	id := fmt.Sprintf("job-%0*d", jobDigits, t.number)
	if t.life != "" {
		id += "-" + t.life
	}
	return id
}

// FindJob returns the id of the only job that a text means: job-NUMBER, with or without leading zeros, and behind it
// as much of the rest as tells it from other jobs of that number. Where there is none it returns the text: the call
// that takes it says that there is no such job, or that it was deleted.
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

// errManyPages says that a job was not found among those of its number.
var errManyPages = errors.New("too many jobs have this number: give the whole id")

// among are the ids that the text means, from pages with the highest number first. It ends behind the text's number,
// or with one id more than an error names; where one of them is the text as a whole, it is the only one.
func (t jobText) among(page func(token string) (*tilthv1.ListJobsResponse, error)) (found []string, err error) {
	token := t.after()
	for range mostPages {
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
		if token = response.GetNextPageToken(); token == "" || len(found) > mostCandidates {
			return found, nil
		}
	}
	return nil, errManyPages
}

// only is the one of the jobs found for a text that is meant by it; the text itself when there is none.
func only(text string, found []string) (string, error) {
	switch {
	case len(found) == 0:
		return text, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > mostCandidates:
		found = append(slices.Clone(found[:mostCandidates]), "...")
	}
	return "", fmt.Errorf("job %s: several ids begin so: give more of one of %s", text, strings.Join(found, ", "))
}

// errNoJobs says that there is no newest job.
var errNoJobs = errors.New("there is no job yet: submit one with 'tilth jobs submit MODEL.onnx'")

// LastJob returns the id of the job that was submitted last. Listings go by numbers, and each shard has its own: the
// job may be on any page.
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

// newest is the job that was submitted last, of one that may be nil and others; of those of one moment, the first.
func newest(last *tilthv1.Job, others []*tilthv1.Job) *tilthv1.Job {
	for _, j := range others {
		if last == nil || j.GetCreatedAt().AsTime().After(last.GetCreatedAt().AsTime()) {
			last = j
		}
	}
	return last
}
