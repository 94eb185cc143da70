package state

import "github.com/tilth-dev/tilth/internal/wire"

// noteBlocked records why nothing of a job can run, and since when.
func (c *Change) noteBlocked(j *job, known *supplies) {
	_, reason := c.blocked(known, j)
	if j.paused() {
		reason = 0
	}
	if reason != j.blocked {
		j.blocked, j.blockedSince = reason, c.cfg.Now()
	}
}

// logLacks logs the classes of work that became unserviceable, or serviceable again, since the previous tick.
func (c *Change) logLacks(before, now *supplies) {
	for of, s := range now.of {
		was := false
		if old := before.of[of]; old != nil {
			was = old.lacking(nil) != 0
		}
		reason := s.lacking(nil)
		if reason != 0 {
			c.describeLack(now, s, reason) // with the agents of this tick; the text is reused until the next
		}
		switch {
		case reason != 0 && !was:
			c.log.Warn("jobs wait", "for", of.describe(), "reason", wire.WaitReason(reason), "message", c.describeLack(now, s, reason))
		case reason == 0 && was:
			c.log.Info("jobs no longer wait", "for", of.describe())
		}
	}
}
