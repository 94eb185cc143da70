package boards

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// These methods are requests that kernels' drivers send in C; tests send them to examine the monitor.

// Ending describes how a call ended.
type Ending uint32

// Endings of calls.
const (
	Returned Ending = iota
	Fault
	Deadline
	Interrupted
)

// Call describes a call of code on the board.
type Call struct {
	Entry     uint32
	Arguments [4]uint32
	// Stack is the initial stack pointer.
	Stack uint32
	// Deadline is in ticks of the counter.
	Deadline uint64
	// Cold flushes the caches first.
	Cold bool
}

// Called is the outcome of a call.
type Called struct {
	Ending Ending
	Ticks  uint64
	// Cause, PC and Address describe a fault in the processor's encoding.
	Cause, PC, Address uint32
}

func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// Write writes to the board's memory.
func (c *Client) Write(address uint32, data []byte) error {
	for part := range slices.Chunk(data, PayloadBytes-4) {
		if _, err := c.ask(opWrite, append(words(address), part...), c.Patience); err != nil {
			return err
		}
		address += uint32(len(part))
	}
	return nil
}

// Fill fills a range of the board's memory with a byte.
func (c *Client) Fill(address, size uint32, value byte) error {
	_, err := c.ask(opFill, words(address, size, uint32(value)), c.Patience)
	return err
}

// Read reads from the board's memory.
func (c *Client) Read(address, size uint32) ([]byte, error) {
	var data []byte
	for size > 0 {
		n := min(size, PayloadBytes-4)
		part, err := c.ask(opRead, words(address, n), c.Patience)
		if err != nil {
			return nil, err
		}
		if len(part) != int(n) {
			return nil, fmt.Errorf("the board sends %d bytes of %d", len(part), n)
		}
		data, address, size = append(data, part...), address+n, size-n
	}
	return data, nil
}

// Sum returns the CRC-32 of a range of the board's memory.
func (c *Client) Sum(address, size uint32) (uint32, error) {
	body, err := c.ask(opSum, words(address, size), c.Patience)
	if err != nil || len(body) != 4 {
		return 0, errors.Join(err, short(len(body) == 4))
	}
	return binary.LittleEndian.Uint32(body), nil
}

func short(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("the board's answer has another length")
}

// Call calls code in the board's memory. limit is the timeout on this machine, in addition to Patience.
func (c *Client) Call(call Call, limit time.Duration) (Called, error) {
	request := words(call.Entry)
	request = append(request, words(call.Arguments[:]...)...)
	cold := uint32(0)
	if call.Cold {
		cold = 1
	}
	request = append(request, words(call.Stack, uint32(call.Deadline), uint32(call.Deadline>>32), cold)...)
	body, err := c.ask(opCall, request, limit+c.Patience)
	if err != nil {
		return Called{}, err
	}
	little := binary.LittleEndian
	if len(body) != 24 {
		return Called{}, short(false)
	}
	return Called{Ending: Ending(little.Uint32(body)), Ticks: little.Uint64(body[4:]), Cause: little.Uint32(body[12:]), PC: little.Uint32(body[16:]),
		Address: little.Uint32(body[20:])}, nil
}
