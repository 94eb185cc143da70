package records

import (
	"fmt"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// NewJob is what is stored once of a job, encoded: that takes its time, which nobody else should wait for.
type NewJob struct {
	spec     []byte
	progress [][]byte
	tasks    []*tilthv1.TaskSpec
}

// EncodeJob encodes a job's specification, which nobody may change afterwards, and the progress of its tasks.
func EncodeJob(spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *NewJob {
	j := &NewJob{spec: encode(spec), progress: make([][]byte, len(progress)), tasks: spec.GetTasks()}
	for i, p := range progress {
		j.progress[i] = encode(p)
	}
	return j
}

// SpecBytes is the size of the specification.
func (j *NewJob) SpecBytes() int64 { return int64(len(j.spec)) }

// PutNew stores what is stored once of a job, the workloads of its tasks, and the request that made it; see
// RequestKey.
func (w *Write) PutNew(jobID string, request []byte, j *NewJob) {
	w.put(bucketSpecs, []byte(jobID), j.spec)
	w.put(bucketRequests, request, []byte(jobID))
	w.ops = append(w.ops, func(tx *txn) error {
		progress, workloads := tx.table(bucketProgress), tx.table(bucketWorkloads)
		for i, p := range j.progress {
			if err := progress.put(progressKey(jobID, uint32(i)), p); err != nil {
				return fmt.Errorf("put the progress of job %s: %w", jobID, err)
			}
		}
		for _, t := range j.tasks {
			if err := workloads.put([]byte(t.GetWorkloadDigest()), slices.Clip(t.GetWorkload())); err != nil {
				return fmt.Errorf("put a workload of job %s: %w", jobID, err)
			}
		}
		return nil
	})
}
