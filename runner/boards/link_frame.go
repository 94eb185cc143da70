package boards

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

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
