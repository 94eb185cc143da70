package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Finish ends a job at its tuner's request. ok is false if the lease is not in force.
func (c *Change) Finish(lease *tilthv1.LeaseToken, state tilthv1.JobState, reason string) (ok bool) {
	j, ok := c.lookUp(lease).(*job)
	if !ok || !j.searches() {
		return false
	}
	j.finishedBy = j.lease.proto()
	j.lease.agent.completed++
	j.lease.agent.failures.Forgive()
	c.end(j, state, reason)
	return true
}
