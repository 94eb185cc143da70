// This file implements the client of a board's monitor. Frames are sent over a serial line or a substitute. Received
// data is not trusted: lengths are bounded, checksums verified, and invalid frames skipped.

package boards

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Version is the version of the protocol.
const Version = 1

// Operations of requests.
const (
	opHello = iota + 1
	opWrite
	opFill
	opRead
	opSum
	opCall
)

// Status codes of answers.
const (
	statusOK = iota
	statusStale
	statusBad
	statusBounds
)

// Line is a serial line or a socket.
type Line interface {
	io.ReadWriter
	SetDeadline(t time.Time) error
}

// beginPatience is the timeout of the first greeting.
const beginPatience = time.Second

// bytePatience is the additional timeout per byte of a request: ten times its duration at 19200 baud. An emulator on
// a busy machine is as slow, because it transfers single bytes.
const bytePatience = 5 * time.Millisecond

// Client communicates with a monitor. It is not safe for concurrent use.
type Client struct {
	line    Line
	in      *bufio.Reader
	session uint32
	number  uint32
	// Patience is the timeout of an answer, in addition to the transfer time of the request and the deadline of a
	// call.
	Patience time.Duration
}

// defaultPatience exceeds the time of any answer, including those of an emulator on a busy machine.
const defaultPatience = 20 * time.Second

// NewClient returns a client over a line. The session is an arbitrary number. A new session ends all others.
func NewClient(line Line, session uint32) *Client {
	return &Client{line: line, in: bufio.NewReaderSize(line, 2*PayloadBytes), session: session, Patience: defaultPatience}
}

// Hello is a monitor's description of its board.
type Hello struct {
	Version uint32
	// Memory is the start address of the candidates' memory.
	Memory, MemoryBytes uint32
	// Hertz is the frequency of the counter. Cycles is set if it counts processor cycles.
	Hertz  uint64
	Cycles bool
	Board  string
	// Digest is the digest of the monitor's sources.
	Digest string
}

// ErrStale means that another session has begun.
var ErrStale = errors.New("another session with the board has begun")

// Begin starts the session. The board may be busy, in which case any received byte ends its call, or still starting
// and unable to receive. Begin therefore repeats the greeting with growing timeouts.
func (c *Client) Begin() (Hello, error) {
	body, err := c.ask(opHello, nil, min(c.Patience, beginPatience))
	for again := 0; errors.Is(err, os.ErrDeadlineExceeded) && beginPatience<<again < c.Patience; {
		if again == 0 { // completes a truncated frame without resembling a new one
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

// text returns the zero-terminated printable text in b.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, b))
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
			continue // the answer to an earlier session
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

// Format of frames; see compiler/boardmonitor/src/link.h.
const (
	magic       = 0x314b4c54
	headerBytes = 24
	// PayloadBytes is the maximum payload of a frame.
	PayloadBytes = 4096
)

// Frame is a request or an answer.
type Frame struct {
	Session, Number, Op uint32
	Payload             []byte
}

// Encode returns the frame's encoding on the link.
func (f Frame) Encode() []byte {
	little := binary.LittleEndian
	b := make([]byte, 0, headerBytes+len(f.Payload)+4)
	for _, word := range []uint32{magic, f.Session, f.Number, f.Op, uint32(len(f.Payload))} {
		b = little.AppendUint32(b, word)
	}
	b = little.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, f.Payload...)
	return little.AppendUint32(b, crc32.ChecksumIEEE(f.Payload))
}

// maxNoise bounds the bytes skipped before a frame.
const maxNoise = 1 << 20

// readFrame reads the next valid frame and skips anything else.
func readFrame(r *bufio.Reader) (Frame, error) {
	little := binary.LittleEndian
	for range maxNoise {
		head, err := r.Peek(headerBytes)
		if err != nil {
			return Frame{}, ended(err)
		}
		n := little.Uint32(head[16:])
		if little.Uint32(head) != magic || little.Uint32(head[20:]) != crc32.ChecksumIEEE(head[:20]) || n > PayloadBytes {
			if _, err := r.Discard(1); err != nil {
				return Frame{}, ended(err)
			}
			continue
		}
		f := Frame{Session: little.Uint32(head[4:]), Number: little.Uint32(head[8:]), Op: little.Uint32(head[12:])}
		rest := make([]byte, headerBytes+n+4)
		if _, err := io.ReadFull(r, rest); err != nil {
			return Frame{}, ended(err)
		}
		f.Payload = rest[headerBytes : headerBytes+n]
		if little.Uint32(rest[headerBytes+n:]) == crc32.ChecksumIEEE(f.Payload) {
			return f, nil
		}
	}
	return Frame{}, fmt.Errorf("the board sends no frame in %d bytes", maxNoise)
}

func ended(err error) error { return fmt.Errorf("reading from the board: %w", err) }

const usualBaud = 115200

// speeds maps speeds to the constants of termios.
var speeds = map[uint32]uint32{
	9600: unix.B9600, 19200: unix.B19200, 38400: unix.B38400, 57600: unix.B57600, 115200: unix.B115200, 230400: unix.B230400, 460800: unix.B460800,
	500000: unix.B500000, 921600: unix.B921600, 1000000: unix.B1000000, 1500000: unix.B1500000, 2000000: unix.B2000000, 3000000: unix.B3000000,
}

// openTTY opens a serial line in raw mode: 8 bits, no parity, no flow control.
func openTTY(path string, baud uint32) (*os.File, error) {
	baud = cmp.Or(baud, usualBaud)
	speed, ok := speeds[baud]
	if !ok {
		return nil, fmt.Errorf("serial lines have no speed of %d baud; use 115200, 921600 or another usual one", baud)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not a serial line: %w", path, err), unix.Close(fd))
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | speed
	t.Ispeed, t.Ospeed = speed, speed
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return nil, errors.Join(fmt.Errorf("setting %s to %d baud: %w", path, baud, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}
