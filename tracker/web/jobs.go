package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Bounds of a page of jobs: how many it shows, and how many it scans for matches.
const (
	jobsOfPage = 50
	maxLooked  = 1000
)

// jobRow is a job in a list.
type jobRow struct {
	*tilthv1.Job
	Trials, Budget uint32
	// Done is the spent fraction of the budget; 0 without one.
	Done float64
	// BestSeconds is the model's latency, UntunedSeconds that with default schedules; 0 while a task lacks one.
	BestSeconds, UntunedSeconds float64
	Left                        string
}

func rows(jobs []*tilthv1.Job) (out []jobRow) {
	for _, j := range jobs {
		t := progress.OfProgress(j, nil)
		row := jobRow{Job: j, Trials: uint32(t.Trials()), Budget: j.GetSpec().GetBudget().GetTrials(), Left: remainingTime(j, uint32(t.Trials())), Done: progress.Done(j)}
		if !j.GetTruncated() {
			row.BestSeconds, row.UntunedSeconds = t.BestSeconds(), t.UntunedSeconds()
		}
		out = append(out, row)
	}
	return out
}

// jobsQuery is a filter for jobs.
type jobsQuery struct {
	Owner, State, Model, Class, Label string
	// classes are the device classes of devices with the label.
	classes map[string]bool
}

func (q jobsQuery) matches(j *tilthv1.Job) bool {
	class := j.GetSpec().GetTarget().GetDeviceClass()
	return contains(j.GetSpec().GetOwner(), q.Owner) && contains(j.GetSpec().GetName(), q.Model) &&
		contains(class, q.Class) && (q.Label == "" || q.classes[class])
}

// contains reports whether text contains all words, in any case and order.
func contains(text, words string) bool {
	text = strings.ToLower(text)
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(words)), func(word string) bool { return !strings.Contains(text, word) })
}

// states returns the job states that match the query.
func (q jobsQuery) states() ([]tilthv1.JobState, error) {
	switch q.State {
	case "":
		return nil, nil
	case "open":
		return openStates, nil
	}
	for number := range tilthv1.JobState_name {
		if s := tilthv1.JobState(number); number != 0 && wire.JobState(s) == q.State {
			return []tilthv1.JobState{s}, nil
		}
	}
	return nil, status.Errorf(codes.InvalidArgument, "unknown job state %q", q.State)
}

// jobsPage is one page of jobs.
type jobsPage struct {
	jobsQuery
	Jobs []jobRow
	// Next links to the next page; empty on the last.
	Next   string
	States []string
	// MayTune is set if the caller may tune models.
	MayTune bool
}

func (s *Site) listJobs(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	q := jobsQuery{Owner: in.Get("owner"), State: in.Get("state"), Model: in.Get("model"), Class: in.Get("class"), Label: in.Get("label")}
	if q.Label != "" {
		found, _, err := s.findDevices(r.Context(), devicesQuery{Label: q.Label}, "", maxDevices)
		if err != nil {
			return err
		}
		q.classes = classesOf(found)
	}
	found, next, err := s.findJobs(r.Context(), q, in.Get("page"))
	if err != nil {
		return err
	}
	p := jobsPage{jobsQuery: q, Jobs: rows(found), MayTune: s.mayTune(r) == nil, States: []string{"open", "queued", "running", "paused", "done", "failed", "cancelled"}}
	if next != "" {
		p.Next = "?" + query("owner", q.Owner, "state", q.State, "model", q.Model, "class", q.Class, "label", q.Label, "page", next)
	}
	return s.render(w, r, http.StatusOK, "jobs", layout{Title: "Jobs", Section: "jobs", Live: LivePath, Page: p})
}

// findJobs returns the newest matching jobs from a page token on, and the next token.
func (s *Site) findJobs(ctx context.Context, q jobsQuery, token string) (found []*tilthv1.Job, next string, err error) {
	states, err := q.states()
	if err != nil {
		return nil, "", err
	}
	return search(jobsOfPage, maxLooked, token, func(want int, token string) ([]*tilthv1.Job, string, error) {
		listed, err := s.jobs.ListJobs(ctx, &tilthv1.ListJobsRequest{States: states, PageSize: uint32(want), PageToken: token})
		return listed.GetJobs(), listed.GetNextPageToken(), err
	}, q.matches)
}

// remainingTime estimates a job's remaining time; "" if unknown. For a budget of trials it assumes that the
// remaining trials take as long as the past ones on average.
func remainingTime(job *tilthv1.Job, trials uint32) string {
	if job.GetEndedAt() != nil {
		return ""
	}
	b, spent := job.GetSpec().GetBudget(), job.GetTimeSpent().AsDuration()
	text := ""
	var shortest time.Duration
	if b.GetTime() != nil {
		shortest = max(b.GetTime().AsDuration()-spent, 0)
		text = humanize.Clock(shortest)
	}
	if b.GetTrials() > 0 && trials > 0 && spent > 0 {
		each := float64(spent) / float64(trials)
		remaining := time.Duration(each * float64(b.GetTrials()-min(trials, b.GetTrials())))
		if text == "" || remaining < shortest {
			text = "about " + humanize.Clock(remaining)
		}
	}
	return text
}
