package tracker

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/retention"
)

// DeleteJob implements tilthv1.JobServiceServer.
func (t *Tracker) DeleteJob(ctx context.Context, req *tilthv1.DeleteJobRequest) (*tilthv1.DeleteJobResponse, error) {
	id := req.GetJobId()
	err := t.update(ctx, func(c *change) error {
		if c.jobs[id] != nil {
			return status.Errorf(codes.FailedPrecondition, "job %s has not ended: cancel it first", id)
		}
		if j := c.archive.Job(id); j != nil {
			c.dropEnded(j, retention.Deleted)
			return nil
		}
		if !c.everMade(id) {
			return notFound("job", id)
		}
		c.repeated("DeleteJob")
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.DeleteJobResponse{}, nil
}

// everMade says whether a job may have had the id, of this life of the records or of one before.
func (t *Tracker) everMade(id string) bool {
	var n uint64
	_, err := fmt.Sscanf(id, "job-%d", &n)
	return err == nil && isJobID(id) && n > 0 && n <= t.nextJob
}

// missing is how many jobs were made that are no longer there: dropped or deleted. The caller holds the lock.
func (t *Tracker) missing() uint64 {
	there := uint64(len(t.jobs) + t.archive.Len())
	return t.nextJob - min(there, t.nextJob)
}
