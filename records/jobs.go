package records

import (
	"cmp"
	"slices"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// OpenJob is what a tracker needs to go on with a job that has not ended.
type OpenJob struct {
	ID       string
	Row      *storev1.JobRow
	Spec     *tilthv1.JobSpec
	Progress []*tilthv1.TaskProgress
	// Sequence of the job's last event.
	LastSequence uint64
	// Damage is what cannot be read of it; the rest may be missing then. nil = none.
	Damage error
}

// OpenBatch is a batch under way with its candidates.
type OpenBatch struct {
	ID         string
	Row        *storev1.BatchRow
	Candidates []*tilthv1.Candidate
	// PredictedSeconds are those of its tilthv1.BatchProposed.
	PredictedSeconds []float32
	// Damage is what cannot be read of it; the rest may be missing then. nil = none.
	Damage error
}

// Take takes over what was proposed.
func (b *OpenBatch) Take(p *tilthv1.BatchProposed) {
	b.Candidates, b.PredictedSeconds = p.GetCandidates(), p.GetPredictedSeconds()
}

// JobQuery says which jobs are wanted, and how many at a time.
type JobQuery struct {
	// States are those of the jobs wanted; none = all.
	States []tilthv1.JobState
	// Sees says whose jobs are wanted; nil = everybody's. Others count towards no limit but MostSeen, and no page
	// names them.
	Sees func(Owner) bool
	// Before is the id of a job that all wanted are older than; empty = the newest on.
	Before string
	// Most jobs, and MostBytes of them encoded, but for one that is larger by itself.
	Most, MostBytes int
	// MostSeen is after how many jobs a page ends that were looked at, wanted or not; 0 = 20,000.
	MostSeen int
}

// mostJobsSeen is JobQuery.MostSeen where that is 0.
const mostJobsSeen = 20000

// SeenEnough says whether a page ends at the next job, after so many that were looked at.
func (q *JobQuery) SeenEnough(seen int) bool { return seen >= cmp.Or(q.MostSeen, mostJobsSeen) }

// EndsAt returns where a page ends that ends at a job which is not wanted; false when it is to go on, since it began
// there.
func (q *JobQuery) EndsAt(id string) (next string, is bool) {
	next = beyond(id)
	return next, q.Before == "" || next < q.Before
}

// beyond is a place in the order of ids before which all jobs with a job's number are, and behind it all with a
// greater one. It names no job.
func beyond(id string) string {
	number, _, _ := strings.Cut(strings.TrimPrefix(id, jobPrefix), "-")
	return jobPrefix + number + "-" + strings.Repeat("z", mostLifeLetters)
}

// jobPrefix begins the ids of jobs, before a number.
const jobPrefix = "job-"

// OnlyOpen says that no job is wanted that has ended.
func (q *JobQuery) OnlyOpen() bool {
	return len(q.States) > 0 && !slices.ContainsFunc(q.States, Final)
}

// Job is the job as those are told who ask for it.
func (j *OpenJob) Job() *tilthv1.Job {
	job := j.Row.GetJob()
	job.Spec, job.Progress = j.Spec, j.Progress
	return job
}

// Listed is the job as it is listed: without its workloads and what each package of a run told of itself.
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
