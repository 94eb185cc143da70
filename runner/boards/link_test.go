package boards

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

func TestFramesAreFoundAfterNoise(t *testing.T) {
	want := Frame{Session: 7, Number: 8, Op: opRead, Payload: []byte("what was asked for")}
	good := want.Encode()
	spoilt, cut := slices.Clone(good), good[:len(good)/2]
	spoilt[len(spoilt)-6] ^= 1
	noise := slices.Concat([]byte("noise TLK1"), spoilt, cut, []byte{0, 1, 2})
	// A truncated frame consumes the following bytes up to its length.
	noise = append(noise, make([]byte, PayloadBytes)...)
	got, err := readFrame(bufio.NewReaderSize(bytes.NewReader(append(noise, good...)), 2*PayloadBytes))
	if err != nil || got.Session != 7 || got.Number != 8 || got.Op != opRead || !bytes.Equal(got.Payload, want.Payload) {
		t.Errorf("%+v: %v", got, err)
	}
}

// FuzzFrames checks that only valid frames are accepted, and that reading ends.
func FuzzFrames(f *testing.F) {
	f.Add(Frame{Session: 1, Number: 2, Op: opSum, Payload: []byte{1, 2, 3}}.Encode())
	f.Add([]byte("TLK1TLK1TLK1TLK1TLK1TLK1TLK1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(data), 2*PayloadBytes)
		for {
			frame, err := readFrame(r)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && len(data) < maxNoise {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Contains(data, frame.Encode()) {
				t.Fatalf("%+v did not arrive", frame)
			}
		}
	})
}
