package state

import "fmt"

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

// Refusal is the error for a refused request, independent of transport; package services converts it to a gRPC status.
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
