// Package rest implements cooldowns of agents by the outcomes of their recent leases. If everything fails on an agent,
// the agent is to blame and gets no work for a while, longer each time. If all failures come from one job, or from the
// builds of one of several builders, that may be to blame instead: the cooldown then covers only that work, and other
// work decides. Callers pass in the time. Start with Record.
package rest
