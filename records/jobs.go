package records

import (
	"slices"

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
	// Damage is what cannot be read of it; the rest may be missing then. nil = none.
	Damage error
}

// JobQuery says which jobs are wanted, and how many at a time.
type JobQuery struct {
	// States are those of the jobs wanted; none = all.
	States []tilthv1.JobState
	// Sees says whose jobs are wanted; nil = everybody's. Others count towards no limit but MostJobsSeen.
	Sees func(Owner) bool
	// Before is the id of a job that all wanted are older than; empty = the newest on.
	Before string
	// Most jobs, and MostBytes of them encoded, but for one that is larger by itself.
	Most, MostBytes int
}

// MostJobsSeen bounds how many jobs one look-up passes over. It goes on until a job that is seen, since a page that
// ended at one which is not would tell its id.
const MostJobsSeen = 20000

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
