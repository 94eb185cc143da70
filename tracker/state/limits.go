package state

import (
	"cmp"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Limits bound the tracker's memory. A call beyond a limit fails with UNAVAILABLE; agents and clients retry it. Zero
// fields have the defaults given in their comments.
type Limits struct {
	// Jobs bounds the open jobs (10,000). SpecBytes bounds the total size of their specifications (512 MiB).
	Jobs      int
	SpecBytes int64
	// JobBatches bounds the open batches of a job (64). CandidateBytes bounds the total size of open candidates (256
	// MiB); one job may use a quarter.
	JobBatches     int
	CandidateBytes int64
	// Agents bounds the sessions (50,000). AgentWaits bounds the pending requests for work of one agent (256).
	Agents, AgentWaits int
	// Gone bounds the remembered agents that are gone (50,000). AgentBytes bounds the total size of agents' specs (512
	// MiB). Classes bounds the toolchains, device classes and tuners offered or requested (200,000).
	Gone       int
	AgentBytes int64
	Classes    int
	// Ended bounds the retained ended jobs (50,000). EndedBytes bounds their stored size (16 GiB).
	Ended      int
	EndedBytes int64
	// Watches bounds the event streams (10,000).
	Watches int
	// Calls bounds the calls that wait for the disk (20,000).
	Calls int
}

// WithDefaults returns l with defaults in place of zero fields.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Jobs: cmp.Or(l.Jobs, 10_000), SpecBytes: cmp.Or(l.SpecBytes, 512<<20),
		JobBatches: cmp.Or(l.JobBatches, 64), CandidateBytes: cmp.Or(l.CandidateBytes, 256<<20),
		Agents: cmp.Or(l.Agents, 50_000), AgentWaits: cmp.Or(l.AgentWaits, 256),
		Gone: cmp.Or(l.Gone, 50_000), AgentBytes: cmp.Or(l.AgentBytes, 512<<20), Classes: cmp.Or(l.Classes, 200_000),
		Ended: cmp.Or(l.Ended, 50_000), EndedBytes: cmp.Or(l.EndedBytes, 16<<30),
		Watches: cmp.Or(l.Watches, 10_000), Calls: cmp.Or(l.Calls, 20_000),
	}
}

// roomForJob returns an error if a job exceeds the limits.
func (m *Machine) roomForJob(specBytes int64) error {
	if len(m.jobs) >= m.cfg.Limits.Jobs {
		return overloaded("jobs", "the tracker has %d open jobs, and no room for more: try again when some have ended", len(m.jobs))
	}
	return m.roomForSpec(specBytes)
}

// roomForSpec returns an error if specifications of that many more bytes exceed the limit.
func (m *Machine) roomForSpec(bytes int64) error {
	if m.load.specBytes+bytes > m.cfg.Limits.SpecBytes {
		return overloaded("specs", "the tracker has jobs of %d bytes, and no room for %d more: try again when some have ended",
			m.load.specBytes, bytes)
	}
	return nil
}

// roomForBatch returns an error if the candidates exceed the limits.
func (m *Machine) roomForBatch(j *job, candidates []*tilthv1.Candidate) error {
	l := m.cfg.Limits
	if len(j.batches) >= l.JobBatches {
		return overloaded("batches", "job %s has %d batches under way: propose more when some are done", j.id, len(j.batches))
	}
	more, own := candidateBytes(candidates), j.candidateBytes
	if own > 0 && own+more > l.CandidateBytes/4 || m.load.candidateBytes > 0 && m.load.candidateBytes+more > l.CandidateBytes {
		return overloaded("candidates", "candidates of %d bytes are under way, %d of job %s: propose %d more when some are done",
			m.load.candidateBytes, own, j.id, more)
	}
	return nil
}

// roomForAgent returns an error if a session exceeds the limits. A session that replaces another always fits.
func (m *Machine) roomForAgent(a *agent) error {
	l, had := m.cfg.Limits, int64(0)
	old := m.agents[a.name()]
	if old != nil {
		had = old.specBytes
	}
	switch {
	case (old == nil || old.gone) && len(m.sessions) >= l.Agents:
		return overloaded("agents", "the tracker has %d agents, and no room for more: try again when some have left", len(m.sessions))
	case m.load.agentBytes-had+a.specBytes > l.AgentBytes:
		return overloaded("agent_bytes", "the tracker knows agents that say %d bytes of themselves, and has no room for %d more: try again when some have left",
			m.load.agentBytes, a.specBytes)
	case len(m.queues)+len(a.offers) > l.Classes:
		return overloaded("classes", "the tracker has %d toolchains, device classes and tuners, and no room for more: try again when some agents have left",
			len(m.queues))
	}
	return nil
}

func overloaded(of, format string, args ...any) error {
	return RefuseOf(Overloaded, of, format, args...)
}

// RefusalKind classifies a refusal by what the caller may do.
type RefusalKind int

const (
	// Invalid means that the field named by Of is wrong; the request must change.
	Invalid RefusalKind = iota + 1
	// NotFound means that the request names something that does not exist.
	NotFound
	// NotNow means that the current state does not allow the call; the text has the remedy.
	NotNow
	// Denied means that the object belongs to someone else.
	Denied
	// VoidSession means that the agent must join again.
	VoidSession
	// StaleLease means that the lease is no longer held, so the work must be dropped. Of names the call.
	StaleLease
	// OtherHistory means that the caller knows events of the job that do not exist; it must read them again.
	OtherHistory
	// MissingArtifact means that an artifact must be uploaded first.
	MissingArtifact
	// Overloaded means that the limit named by Of is reached; the call may be retried later.
	Overloaded
	// OverQuota means that the owner has reached its quota of Of.
	OverQuota
	// Stopping means that the tracker is stopping; another process may answer.
	Stopping
	// StoreAway means that the store's server is unavailable; the call may be retried later.
	StoreAway
	// Unreadable means that the store cannot be read.
	Unreadable
)

// Refusal is the error for a refused request, independent of transport; package rpc converts it to a gRPC status.
// The request has changed nothing.
type Refusal struct {
	Kind RefusalKind
	// Of is the field, call or limit that the kind refers to; empty for other kinds.
	Of   string
	Text string
}

// Error implements error.
func (e *Refusal) Error() string {
	if e.Kind == Invalid {
		return e.Of + ": " + e.Text
	}
	return e.Text
}

// Refuse returns a refusal without Of.
func Refuse(kind RefusalKind, format string, args ...any) error {
	return RefuseOf(kind, "", format, args...)
}

// RefuseOf returns a refusal of a kind with its field, call or limit.
func RefuseOf(kind RefusalKind, of, format string, args ...any) error {
	return &Refusal{Kind: kind, Of: of, Text: fmt.Sprintf(format, args...)}
}

// refuseField returns an Invalid refusal for a field.
func refuseField(field, format string, args ...any) error {
	return RefuseOf(Invalid, field, format, args...)
}

// refuseItem returns an Invalid refusal for a field of a list item, or for the item if field is empty. It formats the
// name only on failure.
func refuseItem(list string, at int, field, format string, args ...any) error {
	name := fmt.Sprintf("%s[%d]", list, at)
	if field != "" {
		name += "." + field
	}
	return refuseField(name, format, args...)
}

// refuseUnknown returns a NotFound refusal.
func refuseUnknown(what, id string) error { return Refuse(NotFound, "%s %q does not exist", what, id) }

// refuseStore returns a refusal for a store that cannot be read; nil for nil.
func refuseStore(err error) error {
	if err == nil {
		return nil
	}
	return Refuse(Unreadable, "read the records: %v", err)
}

// refuseArtifact returns a refusal for a missing artifact.
func refuseArtifact(digest string) error {
	return Refuse(MissingArtifact, "artifact %s is not in the store: upload it", digest)
}

// RefuseSession returns a refusal for a void session.
func RefuseSession(session string) error {
	return Refuse(VoidSession, "session %q is void: join again", session)
}
