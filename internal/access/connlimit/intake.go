package connlimit

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
)

// prefixBytes is what comes before each message of gRPC: whether it is compressed, and its length.
const prefixBytes = 5

var errUnfit = errors.New("a message is compressed, or longer than its method allows")

// intake is what comes of one call's request. It takes of the server's room as its bytes come, and at most what the
// transport keeps of them: a window's worth of what the server has not asked for, and a message that it has asked for.
type intake struct {
	room  *room
	taker taker
	ctx   context.Context
	// most is how long a message may be; window how much the transport takes before it is asked for.
	most, window int

	// These are the connection's reader's.
	prefix [prefixBytes]byte
	begun  int // bytes of the prefix that are there
	left   int // bytes of the message that are still to come

	tooLong    atomic.Uint32 // the length of a message that is too long; 0 = none was
	compressed atomic.Bool   // a message was

	mu      sync.Mutex
	came    int // bytes
	longest int // of the messages, in bytes
	held    int64
	over    bool
}

// open takes the room that a call needs until its request is there.
func (i *intake) open() bool {
	if !i.room.take(i.taker, callBytes) {
		return false
	}
	i.held = callBytes
	return true
}

// take counts what has come and waits until there is room for it; what comes for a call that is over is dropped by the
// transport. The error is for want of room, and ends the connection: nothing else can be read from it meanwhile.
func (i *intake) take(bytes int) error {
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
		i.room.give(i.taker, more)
	} else {
		i.held += more
	}
	return nil
}

func (i *intake) await(bytes int64) error {
	if !i.taker.stranger {
		return i.room.await(i.ctx, i.taker, bytes)
	}
	if !i.room.take(i.taker, bytes) {
		return errNoRoom
	}
	return nil
}

// need counts what has come, and says how much more the call has to take for it.
func (i *intake) need(bytes int) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.came += bytes
	kept := min(i.came, i.window+i.longest+prefixBytes)
	if i.over || kept <= callBytes {
		return 0 // what a call has from its beginning
	}
	return int64(kept) - i.held
}

// follow reads a part of the request's messages. One that is too long, or compressed, gets a length that no message
// may have, so that the transport refuses it before it asks for any of it.
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
				return errUnfit // a part of the prefix has been passed on
			}
			binary.BigEndian.PutUint32(b[1:], math.MaxUint32)
			length = math.MaxUint32
		}
		i.begun, i.left = 0, int(length)
		i.note(min(int(length), i.most))
		b = b[took:]
	}
	return nil
}

// fits says whether the message whose prefix is there may come. A compressed one may not: a few bytes could become any
// number of them, and nobody counts what they become.
func (i *intake) fits(length uint32) bool {
	switch {
	case i.prefix[0] != 0:
		i.compressed.Store(true)
	case uint64(length) > uint64(i.most):
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

// settle notes that the request is there. A small one takes nothing from then on: calls may wait long for work.
func (i *intake) settle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.came <= callBytes && !i.over {
		i.room.give(i.taker, i.held)
		i.held = 0
	}
}

// end gives back all that the call took.
func (i *intake) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over {
		i.over = true
		i.room.give(i.taker, i.held)
	}
}

func (i *intake) ended() bool { return i.ctx.Err() != nil }
