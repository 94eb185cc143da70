package records

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// NewJob holds the encoded immutable data of a job. Encoding is slow, so it is done outside the tracker's lock.
type NewJob struct {
	Spec     []byte   // a tilthv1.JobSpec
	Progress [][]byte // a tilthv1.TaskProgress per task
	Tasks    []*tilthv1.TaskSpec
}

// EncodeJob encodes a job's specification, which must not be modified afterwards, and the progress of its tasks.
func EncodeJob(spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *NewJob {
	j := &NewJob{Spec: Encode(spec), Progress: make([][]byte, len(progress)), Tasks: spec.GetTasks()}
	for i, p := range progress {
		j.Progress[i] = Encode(p)
	}
	return j
}

// SpecBytes returns the size of the encoded specification.
func (j *NewJob) SpecBytes() int64 { return int64(len(j.Spec)) }
