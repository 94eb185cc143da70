package flood

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Initial window of HTTP/2, in bytes.
const firstWindow = 1<<16 - 1

// Flood is a connection with unfinished messages. It keeps to flow control, since whoever does not is dropped.
type Flood struct {
	conn   net.Conn
	framer *http2.Framer
	// Windows are what the server takes of each call, and of all.
	windows map[uint32]int
	window  int
	initial int
	left    map[uint32]int
	calls   int
	// Ended is how many calls the server has ended.
	Ended int
	// Look is called now and then; nil = nothing is.
	Look func()
}

// New begins HTTP/2 on a connection.
func New(conn net.Conn, settings ...http2.Setting) (*Flood, error) {
	f := &Flood{
		conn: conn, framer: http2.NewFramer(conn, conn), windows: map[uint32]int{}, left: map[uint32]int{}, window: firstWindow, initial: firstWindow,
	}
	_, err := io.WriteString(conn, http2.ClientPreface)
	return f, errors.Join(err, f.framer.WriteSettings(settings...))
}

// Begin begins a call with one message of so many bytes, of which it sends the announcement only. Token is its
// caller's; empty = none.
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

// Hear takes what the server sends until the connection ends.
func (f *Flood) Hear() error {
	for {
		if err := f.hear(); err != nil {
			return err
		}
	}
}

// open sends the headers of a call. Token is its caller's; empty = none.
func (f *Flood) open(method, token string) (stream uint32, err error) {
	stream = uint32(2*f.calls + 1)
	f.calls++
	headers := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "flood"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	}
	if token != "" {
		headers = append(headers, [2]string{"authorization", "Bearer " + token})
	}
	// Encoders differ in nothing that lasts from one call to the next: nothing is put into the connection's table.
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

// Send sends what the server takes of the messages, but for the last byte of each. It returns when the server has
// ended all of the calls or has all that there is, and fails when it drops the connection.
func (f *Flood) Send() error {
	for len(f.left) > 0 {
		if f.Look != nil {
			f.Look()
		}
		moved, err := f.send()
		if err == nil && !moved {
			err = f.hear()
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

// hear takes one frame of the server's.
func (f *Flood) hear() error {
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

// Reset breaks all calls off.
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
