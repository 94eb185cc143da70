package connlimit

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
)

// prefixBytes is the length of the prefix of a gRPC message: a compression flag and the length.
const prefixBytes = 5

var errInvalidMessage = errors.New("a message is compressed, or longer than its method allows")

// intake accounts for the request of one call. It reserves memory as bytes arrive, but at most what the transport
// buffers: a flow control window, and the message that the server is reading.
type intake struct {
	budget  *memoryBudget
	account account
	ctx     context.Context
	// max is the maximum length of a message; window is how much the transport accepts before the server reads.
	max, window int

	// prefix to left are used by the connection's reader only.
	prefix [prefixBytes]byte
	begun  int // received bytes of the prefix
	left   int // remaining bytes of the message

	tooLong    atomic.Uint32 // length of an oversized message; 0 = none
	compressed atomic.Bool   // a message was compressed

	mu      sync.Mutex
	came    int // bytes received
	longest int // longest message, in bytes
	held    int64
	over    bool
}

// open reserves the memory that a call needs until its request is complete.
func (i *intake) open() bool {
	if !i.budget.reserve(i.account, callBytes) {
		return false
	}
	i.held = callBytes
	return true
}

// receive counts received bytes and waits until the budget allows them. Data for a finished call is dropped by the
// transport. An error means that the budget is exceeded. It ends the connection, since nothing else can be read from
// it meanwhile.
func (i *intake) receive(bytes int) error {
	more := i.need(bytes)
	if more <= 0 {
		return nil
	}
	if err := i.await(more); err != nil {
		if i.ctx.Err() != nil {
			return nil
		}
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		i.budget.release(i.account, more)
	} else {
		i.held += more
	}
	return nil
}

func (i *intake) await(bytes int64) error {
	if !i.account.unauthenticated {
		return i.budget.await(i.ctx, i.account, bytes)
	}
	if !i.budget.reserve(i.account, bytes) {
		return errOverBudget
	}
	return nil
}

// need counts received bytes, and returns how many more the call has to take.
func (i *intake) need(bytes int) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.came += bytes
	kept := min(i.came, i.window+i.longest+prefixBytes)
	if i.over || kept <= callBytes {
		return 0 // covered by what a call takes at the start
	}
	return int64(kept) - i.held
}

// follow parses a part of the request's messages. It overwrites the length of an oversized or compressed message with
// an invalid one, so that the transport refuses it before reading it.
func (i *intake) follow(b []byte) error {
	for len(b) > 0 {
		if i.left > 0 {
			skip := min(i.left, len(b))
			i.left -= skip
			b = b[skip:]
			continue
		}
		took := copy(i.prefix[i.begun:], b)
		i.begun += took
		if i.begun < prefixBytes {
			return nil
		}
		length := binary.BigEndian.Uint32(i.prefix[1:])
		if !i.fits(length) {
			if took < prefixBytes {
				return errInvalidMessage // a part of the prefix was already passed on
			}
			binary.BigEndian.PutUint32(b[1:], math.MaxUint32)
			length = math.MaxUint32
		}
		i.begun, i.left = 0, int(length)
		i.note(min(int(length), i.max))
		b = b[took:]
	}
	return nil
}

// fits reports whether the message is acceptable by its prefix. Compressed messages are refused: their decompressed
// size is unknown and could not be bounded.
func (i *intake) fits(length uint32) bool {
	switch {
	case i.prefix[0] != 0:
		i.compressed.Store(true)
	case uint64(length) > uint64(i.max):
		i.tooLong.Store(length)
	default:
		return true
	}
	return false
}

func (i *intake) note(length int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.longest = max(i.longest, length)
}

// settle records that the request is complete. A small request then releases its memory, since calls may wait a long
// time for work.
func (i *intake) settle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.came <= callBytes && !i.over {
		i.budget.release(i.account, i.held)
		i.held = 0
	}
}

// end releases all that the call holds.
func (i *intake) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over {
		i.over = true
		i.budget.release(i.account, i.held)
	}
}
