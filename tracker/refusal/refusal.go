package refusal

import "fmt"

// Kind says what is wrong, and thereby what the caller may do.
type Kind int

const (
	// Invalid is when a field of the request, Of, is wrong; another request may do.
	Invalid Kind = iota + 1
	// NotFound is when what the request names does not exist.
	NotFound
	// NotNow is when the state does not allow it; the text tells what to do before.
	NotNow
	// Denied is when it is another's.
	Denied
	// VoidSession is when the agent is to join again.
	VoidSession
	// StaleLease is when the lease is no longer held: the work is to be dropped. Of is the call.
	StaleLease
	// OtherHistory is when the caller knows other events of the job than there are: they are to be read anew.
	OtherHistory
	// MissingArtifact is when an artifact is to be uploaded.
	MissingArtifact
	// Overloaded is when the bound named Of is reached; the same request may be repeated later.
	Overloaded
	// OverQuota is when the owner has as much as it may have of Of.
	OverQuota
	// Stopping is when the tracker stops; another process may answer.
	Stopping
	// StoreAway is when the server of the store is away; the same request may be repeated later.
	StoreAway
	// Unreadable is when the store cannot be read.
	Unreadable
)

// Error is a refusal. What was refused has changed nothing.
type Error struct {
	Kind Kind
	// Of is what the kind is of: a field, a call or a bound; empty for the others.
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

// New returns a refusal of a kind that is of nothing.
func New(kind Kind, format string, args ...any) error { return Of(kind, "", format, args...) }

// Of returns a refusal of a kind.
func Of(kind Kind, of, format string, args ...any) error {
	return &Error{Kind: kind, Of: of, Text: fmt.Sprintf(format, args...)}
}

// Field refuses a request for one of its fields.
func Field(field, format string, args ...any) error { return Of(Invalid, field, format, args...) }

// Item refuses a request for a field of an item of a list, or for the item itself (empty field). The name is made only
// of what is wrong.
func Item(list string, at int, field, format string, args ...any) error {
	name := fmt.Sprintf("%s[%d]", list, at)
	if field != "" {
		name += "." + field
	}
	return Field(name, format, args...)
}

// Unknown refuses a request for something that does not exist.
func Unknown(what, id string) error { return New(NotFound, "%s %q does not exist", what, id) }

// Store reports a store that cannot be read; nil for no error.
func Store(err error) error {
	if err == nil {
		return nil
	}
	return New(Unreadable, "read the records: %v", err)
}

// Artifact refuses a request that needs an artifact which is not there.
func Artifact(digest string) error {
	return New(MissingArtifact, "artifact %s is not in the store: upload it", digest)
}

// Session refuses a call of a session that is void.
func Session(session string) error {
	return New(VoidSession, "session %q is void: join again", session)
}
