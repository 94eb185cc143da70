package accesstest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// firstWindow is the initial flow control window of HTTP/2, in bytes.
const firstWindow = 1<<16 - 1

// Flood is a connection with unfinished messages. It respects flow control, since servers drop peers that do not.
type Flood struct {
	conn   net.Conn
	framer *http2.Framer
	// Windows are the flow control windows of each call and of the connection.
	windows map[uint32]int
	window  int
	initial int
	left    map[uint32]int
	calls   int
	// Ended is the number of calls that the server has ended.
	Ended int
	// Look, if set, is called from time to time.
	Look func()
}

// NewFlood starts HTTP/2 on a connection.
func NewFlood(conn net.Conn, settings ...http2.Setting) (*Flood, error) {
	f := &Flood{
		conn: conn, framer: http2.NewFramer(conn, conn), windows: map[uint32]int{}, left: map[uint32]int{}, window: firstWindow, initial: firstWindow,
	}
	_, err := io.WriteString(conn, http2.ClientPreface)
	return f, errors.Join(err, f.framer.WriteSettings(settings...))
}

// Begin starts a call and sends the prefix of one message of length bytes. token is the caller's bearer token; empty =
// none.
func (f *Flood) Begin(method, token string, length int) error {
	stream, err := f.open(method, token)
	prefix := binary.BigEndian.AppendUint32([]byte{0}, uint32(length))
	f.window -= len(prefix)
	f.windows[stream], f.left[stream] = f.initial-len(prefix), length-1
	return errors.Join(err, f.framer.WriteData(stream, false, prefix))
}

// Ask makes a call with a small message.
func (f *Flood) Ask(method, token string, message []byte) error {
	stream, err := f.open(method, token)
	prefix := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return errors.Join(err, f.framer.WriteData(stream, true, append(prefix, message...)))
}

// ReadAll reads frames until the connection ends.
func (f *Flood) ReadAll() error {
	for {
		if err := f.readFrame(); err != nil {
			return err
		}
	}
}

// open sends the headers of a call. token is the caller's bearer token; empty = none.
func (f *Flood) open(method, token string) (stream uint32, err error) {
	stream = uint32(2*f.calls + 1)
	f.calls++
	headers := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "flood"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	}
	if token != "" {
		headers = append(headers, [2]string{"authorization", "Bearer " + token})
	}
	// A new encoder for each call works because nothing enters the connection's dynamic table.
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSize(0)
	for _, h := range headers {
		if err := e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			return 0, err
		}
	}
	return stream, f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// Send sends as much of the messages as flow control allows, except the last byte of each. It returns once all is sent
// or the server has ended all calls, and fails if the connection is dropped.
func (f *Flood) Send() error {
	for len(f.left) > 0 {
		if f.Look != nil {
			f.Look()
		}
		moved, err := f.send()
		if err == nil && !moved {
			err = f.readFrame()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Flood) send() (moved bool, err error) {
	var part [16 << 10]byte
	for stream, left := range f.left {
		n := min(left, len(part), f.windows[stream], f.window)
		if n <= 0 {
			continue
		}
		if err := f.framer.WriteData(stream, false, part[:n]); err != nil {
			return true, err
		}
		moved = true
		f.window -= n
		f.windows[stream] -= n
		if f.left[stream] -= n; f.left[stream] == 0 {
			delete(f.left, stream)
		}
	}
	return moved, nil
}

// readFrame reads and handles one frame.
func (f *Flood) readFrame() error {
	frame, err := f.framer.ReadFrame()
	if err != nil {
		return err
	}
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if v, is := frame.Value(http2.SettingInitialWindowSize); is {
			for stream := range f.windows {
				f.windows[stream] += int(v) - f.initial
			}
			f.initial = int(v)
		}
	case *http2.WindowUpdateFrame:
		if frame.StreamID == 0 {
			f.window += int(frame.Increment)
		} else {
			f.windows[frame.StreamID] += int(frame.Increment)
		}
	case *http2.HeadersFrame:
		if frame.StreamEnded() {
			delete(f.left, frame.StreamID)
			f.Ended++
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			return f.framer.WritePing(true, frame.Data)
		}
	}
	return nil
}

// Reset resets all calls.
func (f *Flood) Reset() error {
	for stream := range f.windows {
		if err := f.framer.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the connection.
func (f *Flood) Close() error { return f.conn.Close() }
