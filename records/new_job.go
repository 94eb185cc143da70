package records

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// NewJob is what is stored once of a job, encoded: that takes its time, which nobody else should wait for.
type NewJob struct {
	Spec     []byte   // a tilthv1.JobSpec
	Progress [][]byte // a tilthv1.TaskProgress of each task
	Tasks    []*tilthv1.TaskSpec
}

// EncodeJob encodes a job's specification, which nobody may change afterwards, and the progress of its tasks.
func EncodeJob(spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *NewJob {
	j := &NewJob{Spec: Encode(spec), Progress: make([][]byte, len(progress)), Tasks: spec.GetTasks()}
	for i, p := range progress {
		j.Progress[i] = Encode(p)
	}
	return j
}

// SpecBytes is the size of the specification.
func (j *NewJob) SpecBytes() int64 { return int64(len(j.Spec)) }
