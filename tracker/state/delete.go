package state

import (
	"fmt"

	"github.com/tilth-dev/tilth/tracker/policy/retention"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// everMade says whether a job may have had the id, of this life of the records or of one before.
func (m *Machine) everMade(id string) bool {
	var n uint64
	_, err := fmt.Sscanf(id, "job-%d", &n)
	return err == nil && IsJobID(id) && n > 0 && n <= m.nextJob
}

// Missing is how many jobs were made that are no longer there: dropped or deleted.
func (m *Machine) Missing() uint64 {
	there := uint64(len(m.jobs) + m.archive.Len())
	return m.nextJob - min(there, m.nextJob)
}

// Delete drops a job that has ended. To do so again changes nothing.
func (c *Change) Delete(id string) error {
	if c.jobs[id] != nil {
		return refusal.New(refusal.NotNow, "job %s has not ended: cancel it first", id)
	}
	if j := c.archive.Job(id); j != nil {
		c.dropEnded(j, retention.Deleted)
		return nil
	}
	return c.DeleteGone(id)
}

// DeleteGone is Delete for a job that is no longer there, or not for the caller.
func (c *Change) DeleteGone(id string) error {
	if !c.everMade(id) {
		return refusal.Unknown("job", id)
	}
	c.Repeated("DeleteJob")
	return nil
}
