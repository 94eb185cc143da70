package connlimit

import (
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Limits bound what a peer may hold. The zero value of each field but Age stands for its default.
type Limits struct {
	// Connections are those of all peers together; 16384.
	Connections int
	// PerHost are those of one address; 2048, since a whole rack may be behind one. This machine's own are not counted
	// so: behind a tunnel or a proxy, all peers come from there.
	PerHost int
	// Streams are the calls that a connection may have under way; more of them wait at the peer. 1024.
	Streams uint32
	// Handshake is how long a connection may take to become one; 10 s.
	Handshake time.Duration
	// Idle is how long a connection without a call is kept; 5 min. The peer connects again when it calls.
	Idle time.Duration
	// Stall is how long a request, or the next message of a stream, may take on the wire; 2 min. A peer that leaves
	// anything unread for twice that is dropped.
	Stall time.Duration
	// Age is how long a connection may last before it is to be made anew, so that what was proved when it began is
	// proved again; 0 = for ever. Calls under way then have as long again as AgeGrace; 5 min.
	Age, AgeGrace time.Duration
	// Ping is how long a connection may be silent before it is asked for a sign of life, which has to come within half
	// of that; 20 s.
	Ping time.Duration
	// HeaderBytes bounds the headers of a call; 16 KiB.
	HeaderBytes uint32
	// MessageBytes bounds a message; wire.MaxMessageBytes.
	MessageBytes int
	// RequestBytes bounds what all requests take while they come and until they are answered, as they come over the
	// wire; 512 MiB. One caller may have a quarter of it, one connection an eighth. Callers that prove nothing have
	// next to nothing.
	RequestBytes int64
	// RoomWait is how long a connection waits for room for what has come on it, before it is dropped; 3 s.
	RoomWait time.Duration
	// AnswerBytes bounds what all answers take while they are made and until their peers have room for them, shared as
	// RequestBytes is; as much as RequestBytes.
	AnswerBytes int64
}

// WithDefaults returns the limits with their defaults filled in.
func (l Limits) WithDefaults() Limits {
	setDefault(&l.Connections, 16384)
	setDefault(&l.PerHost, 2048)
	setDefault(&l.Streams, 1024)
	setDefault(&l.Handshake, 10*time.Second)
	setDefault(&l.Idle, 5*time.Minute)
	setDefault(&l.Stall, 2*time.Minute)
	setDefault(&l.AgeGrace, 5*time.Minute)
	setDefault(&l.Ping, 20*time.Second)
	setDefault(&l.HeaderBytes, 16<<10)
	setDefault(&l.MessageBytes, wire.MaxMessageBytes)
	setDefault(&l.RequestBytes, 512<<20)
	setDefault(&l.RoomWait, 3*time.Second)
	setDefault(&l.AnswerBytes, l.RequestBytes)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
