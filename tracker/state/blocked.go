package state

import "github.com/tilth-dev/tilth/internal/wire/names"

// noteBlocked notes since when nothing of a job can go on.
func (c *Change) noteBlocked(j *job, known *supplies) {
	_, reason := c.blocked(known, j)
	if j.paused() {
		reason = 0
	}
	if reason != j.blocked {
		j.blocked, j.blockedSince = reason, c.cfg.Now()
	}
}

// tellLacks logs what jobs have needed since the beat before that nobody can do, and what is there again.
func (c *Change) tellLacks(before, now *supplies) {
	for of, s := range now.of {
		was := false
		if old := before.of[of]; old != nil {
			was = old.lacking(nil) != 0
		}
		reason := s.lacking(nil)
		if reason != 0 {
			c.describeLack(now, s, reason) // by the agents as they are now: it is told until the next beat
		}
		switch {
		case reason != 0 && !was:
			c.log.Warn("jobs wait", "for", of.what(), "reason", names.WaitReason(reason), "message", c.describeLack(now, s, reason))
		case reason == 0 && was:
			c.log.Info("jobs go on", "for", of.what())
		}
	}
}
