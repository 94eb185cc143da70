package state

import (
	"fmt"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// everMade reports whether a job may once have had the id, in this generation of the store or an earlier one.
func (m *Machine) everMade(id string) bool {
	var n uint64
	_, err := fmt.Sscanf(id, "job-%d", &n)
	return err == nil && IsJobID(id) && n > 0 && n <= m.nextJob
}

// Missing returns the number of jobs that were created and have since been dropped or deleted.
func (m *Machine) Missing() uint64 {
	there := uint64(len(m.jobs) + m.archive.Len())
	return m.nextJob - min(there, m.nextJob)
}

// Delete drops an ended job. Repeating the call changes nothing.
func (c *Change) Delete(id string) error {
	if c.jobs[id] != nil {
		return Refuse(NotNow, "job %s has not ended: cancel it first", id)
	}
	if j := c.archive.Job(id); j != nil {
		c.dropEnded(j, policy.Deleted)
		return nil
	}
	return c.DeleteGone(id)
}

// DeleteGone handles Delete for a job that no longer exists or that the caller may not see.
func (c *Change) DeleteGone(id string) error {
	if !c.everMade(id) {
		return refuseUnknown("job", id)
	}
	c.Repeated("DeleteJob")
	return nil
}
