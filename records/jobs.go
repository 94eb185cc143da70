package records

import (
	"cmp"
	"slices"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// OpenJob is the stored state that a tracker needs to continue an open job.
type OpenJob struct {
	ID       string
	Row      *storev1.JobRow
	Spec     *tilthv1.JobSpec
	Progress []*tilthv1.TaskProgress
	// Sequence number of the job's last event.
	LastSequence uint64
	// Damage describes unreadable data, in which case other fields may be missing; nil without damage.
	Damage error
}

// OpenBatch is an open batch with its candidates.
type OpenBatch struct {
	ID         string
	Row        *storev1.BatchRow
	Candidates []*tilthv1.Candidate
	// PredictedSeconds is from the batch's tilthv1.BatchProposed.
	PredictedSeconds []float32
	// Damage describes unreadable data, in which case other fields may be missing; nil without damage.
	Damage error
}

// Take copies the candidates and predictions of a proposal.
func (b *OpenBatch) Take(p *tilthv1.BatchProposed) {
	b.Candidates, b.PredictedSeconds = p.GetCandidates(), p.GetPredictedSeconds()
}

// JobQuery selects a page of jobs.
type JobQuery struct {
	// States selects jobs by state; none selects all.
	States []tilthv1.JobState
	// Sees selects jobs by owner; nil selects all. Skipped jobs count only towards MaxSeen, and no page names them.
	Sees func(Owner) bool
	// Before selects jobs older than the one with this id; empty starts at the newest.
	Before string
	// Max and MaxBytes bound the jobs of a page and their encoded size, except for a single larger job.
	Max, MaxBytes int
	// MaxSeen bounds the jobs examined for a page, selected or not; 0 means 20,000.
	MaxSeen int
}

// maxJobsSeen is the default of JobQuery.MaxSeen.
const maxJobsSeen = 20000

// SeenEnough reports whether a page must end after examining seen jobs.
func (q *JobQuery) SeenEnough(seen int) bool { return seen >= cmp.Or(q.MaxSeen, maxJobsSeen) }

// EndsAt returns the mark of a page that ends at an unselected job; false if the page began there and must continue.
func (q *JobQuery) EndsAt(id string) (next string, is bool) {
	next = beyond(id)
	return next, q.Before == "" || next < q.Before
}

// beyond returns a mark that sorts after all ids with the job's number and before all with greater numbers. It names
// no job.
func beyond(id string) string {
	number, _, _ := strings.Cut(strings.TrimPrefix(id, jobPrefix), "-")
	return jobPrefix + number + "-" + strings.Repeat("z", maxGenerationLetters)
}

// jobPrefix is the prefix of job ids; a number follows.
const jobPrefix = "job-"

// OnlyOpen reports whether the query selects only open jobs.
func (q *JobQuery) OnlyOpen() bool {
	return len(q.States) > 0 && !slices.ContainsFunc(q.States, Final)
}

// Job returns the job as clients see it.
func (j *OpenJob) Job() *tilthv1.Job {
	job := j.Row.GetJob()
	job.Spec, job.Progress = j.Spec, j.Progress
	return job
}

// Listed returns the job as in a listing: without workloads, and without the packages' profiles and manifests.
func (j *OpenJob) Listed() *tilthv1.Job {
	job := j.Job()
	for _, t := range job.GetSpec().GetTasks() {
		t.Workload = nil
	}
	for _, p := range job.GetResult().GetPackages() {
		p.Profile, p.Manifest = nil, nil
	}
	CutListed(job)
	return job
}
