package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// leanConn is a connection of gRPC's clients of which a server keeps as little as it can: one goroutine reads from it
// and answers, and a call that waits for work is an entry in a line. It shows what the protocol costs, and is no
// server for a farm: its calls have one request and one answer, no deadlines and no errors, and whoever reads too
// slowly holds up who answers.
type leanConn struct {
	conn    net.Conn
	tracker *tracker
	// unread is what has come since the peer was last told that there is room again, in bytes.
	unread int

	mu     sync.Mutex
	window int // what the peer has room for, in bytes
	calls  map[uint32]*leanCall
}

// leanCall is a call under way.
type leanCall struct {
	method string
	body   []byte
}

const (
	messageHeadBytes = 5 // of each message: whether it is compressed, and its length
	mostBodyBytes    = 1 << 20
	// smallWindow is the window of HTTP/2 until something else is said.
	smallWindow = 1<<16 - 1
)

var (
	leanHeaders  = headerBlock(hpack.HeaderField{Name: ":status", Value: "200"}, hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
	leanTrailers = headerBlock(hpack.HeaderField{Name: "grpc-status", Value: "0"})
)

// headerBlock encodes headers so that a peer has nothing to remember of them.
func headerBlock(fields ...hpack.HeaderField) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	for _, f := range fields {
		_ = encoder.WriteField(f) // into memory
	}
	return block.Bytes()
}

// leanHandlers are the handlers of calls that wait for nothing, by method.
var leanHandlers = func() map[string]grpc.MethodHandler {
	handlers := map[string]grpc.MethodHandler{}
	for _, service := range []grpc.ServiceDesc{
		tilthv1.AgentService_ServiceDesc, tilthv1.SearchService_ServiceDesc, tilthv1.BuildService_ServiceDesc, tilthv1.MeasureService_ServiceDesc,
	} {
		for _, m := range service.Methods {
			handlers["/"+service.ServiceName+"/"+m.MethodName] = m.Handler
		}
	}
	return handlers
}()

// serveLean answers the calls of a listener's connections.
func serveLean(listener net.Listener, t *tracker) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		c := &leanConn{conn: conn, tracker: t, window: smallWindow, calls: map[uint32]*leanCall{}}
		go func() {
			defer conn.Close()
			_ = c.serve() // the peer notices
		}()
	}
}

func (c *leanConn) serve() error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return errors.Join(errors.New("the peer does not speak HTTP/2"), err)
	}
	err := c.send(func(w *http2.Framer) error {
		return errors.Join(
			w.WriteSettings(
				http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: wire.WindowBytes},
				http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: mostStreams}),
			w.WriteWindowUpdate(0, wire.WindowBytes-smallWindow))
	})
	reader := http2.NewFramer(nil, c.conn)
	reader.SetReuseFrames()
	reader.ReadMetaHeaders = hpack.NewDecoder(4096, nil) // what peers may use before they have read the settings
	for err == nil {
		var f http2.Frame
		if f, err = reader.ReadFrame(); err == nil {
			err = c.take(f)
		}
	}
	return err
}

// take does what a frame asks for.
func (c *leanConn) take(f http2.Frame) error {
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.begin(id, f)
	case *http2.DataFrame:
		return c.data(id, f)
	case *http2.RSTStreamFrame:
		c.end(id)
	case *http2.WindowUpdateFrame:
		if id == 0 {
			c.mu.Lock()
			c.window += int(f.Increment)
			c.mu.Unlock()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.send(func(w *http2.Framer) error { return w.WritePing(true, f.Data) })
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.send((*http2.Framer).WriteSettingsAck)
		}
	}
	return nil
}

func (c *leanConn) begin(id uint32, f *http2.MetaHeadersFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) >= mostStreams || f.StreamEnded() {
		return fmt.Errorf("call %d is one too many, or has no request", id)
	}
	c.calls[id] = &leanCall{method: f.PseudoValue("path")}
	return nil
}

// end forgets a call, and says whether it was under way.
func (c *leanConn) end(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, is := c.calls[id]
	delete(c.calls, id)
	return is
}

func (c *leanConn) data(id uint32, f *http2.DataFrame) error {
	if c.unread += int(f.Header().Length); c.unread > wire.WindowBytes/2 {
		if err := c.send(func(w *http2.Framer) error { return w.WriteWindowUpdate(0, uint32(c.unread)) }); err != nil {
			return err
		}
		c.unread = 0
	}
	c.mu.Lock()
	call := c.calls[id]
	c.mu.Unlock()
	if call == nil {
		return nil
	}
	if len(call.body)+len(f.Data()) > mostBodyBytes {
		return fmt.Errorf("the request of %s is longer than %d bytes", call.method, mostBodyBytes)
	}
	call.body = append(call.body, f.Data()...)
	if !f.StreamEnded() {
		return nil
	}
	return c.handle(id, call)
}

// handle answers a call, at once or when there is work. Nothing refers to its request after that.
func (c *leanConn) handle(id uint32, call *leanCall) error {
	if len(call.body) < messageHeadBytes {
		return fmt.Errorf("the request of %s is no message", call.method)
	}
	body := call.body[messageHeadBytes:]
	call.body = nil
	if call.method == tilthv1.AgentService_LeaseWork_FullMethodName {
		request := &tilthv1.LeaseWorkRequest{}
		if err := proto.Unmarshal(body, request); err != nil {
			return err
		}
		c.tracker.lease(request, func(work *tilthv1.LeaseWorkResponse) {
			_ = c.answer(id, work) // whoever reads from the connection notices
		})
		return nil
	}
	handle := leanHandlers[call.method]
	if handle == nil {
		return fmt.Errorf("there is no method %q", call.method)
	}
	decode := func(into any) error { return proto.Unmarshal(body, into.(proto.Message)) }
	answer, err := handle(c.tracker, context.Background(), decode, nil)
	if err != nil {
		return err
	}
	return c.answer(id, answer.(proto.Message))
}

// answer ends a call with its answer, unless it was reset.
func (c *leanConn) answer(id uint32, m proto.Message) error {
	if !c.end(id) {
		return nil
	}
	text, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, messageHeadBytes, messageHeadBytes+proto.Size(m)), m)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(text[1:], uint32(len(text)-messageHeadBytes))
	c.mu.Lock()
	c.window -= len(text)
	enough := c.window >= 0 && len(text) <= smallWindow
	c.mu.Unlock()
	if !enough {
		return errors.Join(errors.New("the peer has no room for an answer"), c.conn.Close())
	}
	return c.send(func(w *http2.Framer) error {
		err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: leanHeaders, EndHeaders: true})
		for len(text) > 0 {
			n := min(len(text), mostFrameBytes)
			err = errors.Join(err, w.WriteData(id, false, text[:n]))
			text = text[n:]
		}
		return errors.Join(err, w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: leanTrailers, EndHeaders: true, EndStream: true}))
	})
}

// mostFrameBytes is how long a frame may be for any peer.
const mostFrameBytes = 1 << 14

// leanWriter is a buffer for frames that are sent together.
type leanWriter struct {
	bytes.Buffer
	framer *http2.Framer
}

var leanWriters = sync.Pool{New: func() any {
	w := &leanWriter{}
	w.framer = http2.NewFramer(&w.Buffer, nil)
	return w
}}

// send sends frames in one piece.
func (c *leanConn) send(write func(*http2.Framer) error) error {
	w := leanWriters.Get().(*leanWriter)
	defer leanWriters.Put(w)
	w.Reset()
	if err := write(w.framer); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Write(w.Bytes())
	return err
}
