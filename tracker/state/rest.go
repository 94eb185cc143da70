package state

// strike notes a failed lease of an agent, and says whether the agent rather than the work is to blame. The leases
// that end with a session are one failure: the agent died once.
func (a *agent) strike(w work) (suspect bool) {
	counts := !a.gone || !a.struckOut
	a.struckOut = a.gone
	return a.rest.Strike(w.subject(), w.parent().id, counts)
}

// beginRest has an agent that is to blame wait before it is tried again. A single lease then tells whether it works.
func (c *Change) beginRest(a *agent, message string) {
	wait, begun := c.cfg.Rest.Begin(&a.rest, c.cfg.Clock(), c.cfg.Now(), clip(message, maxMessageBytes))
	if !begun {
		return
	}
	c.tell(Rested)
	_, reason, _ := a.rest.Last()
	c.log.Warn("agent is given a rest", "agent", a.name(), "seconds", wait.Seconds(), "reason", reason)
}
