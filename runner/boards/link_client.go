// Link speaks with the monitor of a board: frames over a serial line, or over what stands in for one. What
// arrives is not trusted: lengths are bounded, checksums checked, and whatever is no frame is skipped. Begin with
// Client.

package boards

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Version is that of the protocol.
const Version = 1

// What is asked of a monitor.
const (
	opHello = iota + 1
	opWrite
	opFill
	opRead
	opSum
	opCall
)

// How an answer begins.
const (
	statusOK = iota
	statusStale
	statusBad
	statusBounds
)

// Line is what frames go over: a serial line or a socket.
type Line interface {
	io.ReadWriter
	SetDeadline(t time.Time) error
}

// beginPatience is how long the first greeting is waited for.
const beginPatience = time.Second

// bytePatience is what each byte of a request adds to the patience: ten times what it takes at 19200 baud. An emulator
// on a busy machine takes as long, since it hands over single bytes.
const bytePatience = 5 * time.Millisecond

// Client speaks with a monitor. It is for one goroutine.
type Client struct {
	line    Line
	in      *bufio.Reader
	session uint32
	number  uint32
	// Patience is how long an answer may take, beside what sending the request takes, and of a call beside its
	// deadline.
	Patience time.Duration
}

// defaultPatience is far more than an answer takes, also of an emulator on a busy machine.
const defaultPatience = 20 * time.Second

// NewClient is a client over a line. A session is any number; a session that begins ends all others.
func NewClient(line Line, session uint32) *Client {
	return &Client{line: line, in: bufio.NewReaderSize(line, 2*PayloadBytes), session: session, Patience: defaultPatience}
}

// Hello is what a monitor says of its board.
type Hello struct {
	Version uint32
	// Memory is where the candidates' memory begins.
	Memory, MemoryBytes uint32
	// Hertz are the counter's ticks in a second. Cycles says whether these are the processor's cycles.
	Hertz  uint64
	Cycles bool
	Board  string
	// Digest is of the monitor's sources.
	Digest string
}

// Ending is how a call ended.
type Ending uint32

// The endings.
const (
	Returned Ending = iota
	Fault
	Deadline
	Interrupted
)

// Call is a call of code on the board.
type Call struct {
	Entry     uint32
	Arguments [4]uint32
	// Stack is the end of the stack.
	Stack uint32
	// Deadline is in ticks.
	Deadline uint64
	// Cold empties the caches before.
	Cold bool
}

// Called is what became of a call.
type Called struct {
	Ending Ending
	Ticks  uint64
	// Cause, PC and Address are of a fault, in the processor's own words.
	Cause, PC, Address uint32
}

// ErrStale says that another session has begun.
var ErrStale = errors.New("another session with the board has begun")

// Begin begins the session, also with a board that is in the middle of something, where a byte that arrives ends a
// call, or that starts only now, and hears nothing yet. So it greets again and again, and waits longer each time.
func (c *Client) Begin() (Hello, error) {
	body, err := c.ask(opHello, nil, min(c.Patience, beginPatience))
	for again := 0; errors.Is(err, os.ErrDeadlineExceeded) && beginPatience<<again < c.Patience; {
		if again == 0 { // a frame that was cut short wants at most so many bytes yet, which are none of a frame
			if err := c.send(make([]byte, headerBytes+PayloadBytes+4)); err != nil {
				return Hello{}, err
			}
		}
		again++
		body, err = c.ask(opHello, nil, beginPatience<<again)
	}
	if err != nil {
		return Hello{}, err
	}
	const board, digest = 32, 16
	if len(body) != 24+board+digest {
		return Hello{}, fmt.Errorf("the board greets with %d bytes", len(body))
	}
	little := binary.LittleEndian
	h := Hello{Version: little.Uint32(body), Memory: little.Uint32(body[4:]), MemoryBytes: little.Uint32(body[8:]), Hertz: little.Uint64(body[12:]),
		Cycles: little.Uint32(body[20:]) == 1, Board: text(body[24 : 24+board]), Digest: text(body[24+board:])}
	switch {
	case h.Version != Version:
		return h, fmt.Errorf("the board's monitor speaks version %d of the protocol, and this program version %d: flash the monitor of this version", h.Version, Version)
	case h.Hertz == 0 || h.MemoryBytes > 1<<31 || h.Memory > -h.MemoryBytes:
		return h, fmt.Errorf("the board says it has %d bytes at %#x and a counter of %d Hz", h.MemoryBytes, h.Memory, h.Hertz)
	}
	return h, nil
}

// text is a text that ends with zeros, of printable letters.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, b))
}

func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// Write writes memory of the board.
func (c *Client) Write(address uint32, data []byte) error {
	for part := range slices.Chunk(data, PayloadBytes-4) {
		if _, err := c.ask(opWrite, append(words(address), part...), c.Patience); err != nil {
			return err
		}
		address += uint32(len(part))
	}
	return nil
}

// Fill fills memory of the board with a byte.
func (c *Client) Fill(address, size uint32, value byte) error {
	_, err := c.ask(opFill, words(address, size, uint32(value)), c.Patience)
	return err
}

// Read reads memory of the board.
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

// Sum is the CRC-32 of memory of the board.
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

// Call calls code that was written before. The time on this machine is bounded by limit, beside Patience.
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

// ask sends a request and returns the body of its answer.
func (c *Client) ask(op uint32, payload []byte, patience time.Duration) ([]byte, error) {
	c.number++
	frame := Frame{c.session, c.number, op, payload}.Encode()
	patience += time.Duration(len(frame)) * bytePatience
	if err := c.send(frame); err != nil {
		return nil, err
	}
	if err := c.line.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("the link: %w", err)
	}
	for {
		f, err := readFrame(c.in)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, fmt.Errorf("the board does not answer within %v: %w", patience, err)
		}
		if err != nil {
			return nil, err
		}
		if f.Session != c.session || f.Number != c.number || f.Op != op || len(f.Payload) < 4 {
			continue // the answer to somebody before
		}
		return f.Payload[4:], status(binary.LittleEndian.Uint32(f.Payload))
	}
}

func status(s uint32) error {
	switch s {
	case statusOK:
		return nil
	case statusStale:
		return ErrStale
	case statusBounds:
		return errors.New("the board has no such memory for candidates")
	default:
		return fmt.Errorf("the board refuses a request (status %d)", s)
	}
}

func (c *Client) send(data []byte) error {
	if err := c.line.SetDeadline(time.Now().Add(c.Patience + time.Duration(len(data))*bytePatience)); err != nil {
		return fmt.Errorf("the link: %w", err)
	}
	if _, err := c.line.Write(data); err != nil {
		return fmt.Errorf("sending to the board: %w", err)
	}
	return nil
}
