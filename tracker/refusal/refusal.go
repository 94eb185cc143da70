package refusal

import "fmt"

// Kind classifies a refusal by what the caller may do.
type Kind int

const (
	// Invalid means that the field named by Of is wrong; the request must change.
	Invalid Kind = iota + 1
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

// Error is a refusal. A refused request has changed nothing.
type Error struct {
	Kind Kind
	// Of is the field, call or limit that the kind refers to; empty for other kinds.
	Of   string
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Kind == Invalid {
		return e.Of + ": " + e.Text
	}
	return e.Text
}

// New returns a refusal without Of.
func New(kind Kind, format string, args ...any) error { return Of(kind, "", format, args...) }

// Of returns a refusal of a kind with its field, call or limit.
func Of(kind Kind, of, format string, args ...any) error {
	return &Error{Kind: kind, Of: of, Text: fmt.Sprintf(format, args...)}
}

// Field returns an Invalid refusal for a field.
func Field(field, format string, args ...any) error { return Of(Invalid, field, format, args...) }

// Item returns an Invalid refusal for a field of a list item, or for the item if field is empty. It formats the name
// only on failure.
func Item(list string, at int, field, format string, args ...any) error {
	name := fmt.Sprintf("%s[%d]", list, at)
	if field != "" {
		name += "." + field
	}
	return Field(name, format, args...)
}

// Unknown returns a NotFound refusal.
func Unknown(what, id string) error { return New(NotFound, "%s %q does not exist", what, id) }

// Store returns a refusal for a store that cannot be read; nil for nil.
func Store(err error) error {
	if err == nil {
		return nil
	}
	return New(Unreadable, "read the records: %v", err)
}

// Artifact returns a refusal for a missing artifact.
func Artifact(digest string) error {
	return New(MissingArtifact, "artifact %s is not in the store: upload it", digest)
}

// Session returns a refusal for a void session.
func Session(session string) error {
	return New(VoidSession, "session %q is void: join again", session)
}
