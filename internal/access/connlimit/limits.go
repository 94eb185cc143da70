package connlimit

import (
	"cmp"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Limits bound the resources of peers. The zero value of each field except Age means its default.
type Limits struct {
	// Connections bounds all connections of calls together; 16384. The last ones are for operators.
	Connections int
	// WebConnections bounds the connections of pages; defaults to Connections.
	WebConnections int
	// PerHost bounds the connections of one address; 2048, since a whole rack may share one. The local address is
	// exempt: behind a tunnel or proxy, all peers come from there.
	PerHost int
	// Streams bounds the concurrent calls of a connection; further calls wait at the peer. 1024.
	Streams uint32
	// Handshake bounds the duration of a handshake; 10 s.
	Handshake time.Duration
	// Idle is how long a connection without calls stays open; 5 min. The peer reconnects at its next call.
	Idle time.Duration
	// Stall bounds the transfer of a request or of a stream's next message; 2 min. A peer that leaves anything unread
	// for twice that time is dropped.
	Stall time.Duration
	// Age is the maximum age of a connection, after which the peer has to reconnect and authenticate again; 0 = no
	// limit. AgeGrace is the time that calls then have to finish; 5 min.
	Age, AgeGrace time.Duration
	// Ping is the idle time after which a keepalive ping is sent, which must be answered within half that time; 20 s.
	Ping time.Duration
	// HeaderBytes bounds the headers of a call; 16 KiB.
	HeaderBytes uint32
	// MessageBytes bounds a message; wire.MaxMessageBytes.
	MessageBytes int
	// RequestBytes bounds the memory of all requests, as encoded on the wire, from arrival until they are answered;
	// 512 MiB. One caller may use a quarter of it, one connection an eighth. Unauthenticated callers get only a few
	// kilobytes.
	RequestBytes int64
	// MemoryWait is how long a connection waits for memory for received data before it is dropped; 3 s.
	MemoryWait time.Duration
	// AnswerBytes bounds the memory of all answers from their start until the peers have read them, shared like
	// RequestBytes; defaults to RequestBytes.
	AnswerBytes int64
}

// WithDefaults returns the limits with their defaults filled in.
func (l Limits) WithDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 16384)
	l.WebConnections = cmp.Or(l.WebConnections, l.Connections)
	l.PerHost = cmp.Or(l.PerHost, 2048)
	l.Streams = cmp.Or(l.Streams, 1024)
	l.Handshake = cmp.Or(l.Handshake, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 5*time.Minute)
	l.Stall = cmp.Or(l.Stall, 2*time.Minute)
	l.AgeGrace = cmp.Or(l.AgeGrace, 5*time.Minute)
	l.Ping = cmp.Or(l.Ping, 20*time.Second)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 16<<10)
	l.MessageBytes = cmp.Or(l.MessageBytes, wire.MaxMessageBytes)
	l.RequestBytes = cmp.Or(l.RequestBytes, 512<<20)
	l.MemoryWait = cmp.Or(l.MemoryWait, 3*time.Second)
	l.AnswerBytes = cmp.Or(l.AnswerBytes, l.RequestBytes)
	return l
}
