package connlimit

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// inflated counts the bytes decompressed from messages.
var inflated atomic.Int64

// bomb is a compressor known to both sides. One byte expands to half a gigabyte.
type bomb struct{}

func init() { encoding.RegisterCompressor(bomb{}) }

func (bomb) Name() string { return "bomb" }

func (bomb) Compress(w io.Writer) (io.WriteCloser, error) { return fuse{w}, nil }

func (bomb) Decompress(io.Reader) (io.Reader, error) { return io.LimitReader(blast{}, 512<<20), nil }

// fuse writes one byte for each message.
type fuse struct{ io.Writer }

func (fuse) Write(b []byte) (int, error) { return len(b), nil }

func (f fuse) Close() error {
	_, err := f.Writer.Write([]byte{1})
	return err
}

// blast reads as endless zeros.
type blast struct{}

func (blast) Read(b []byte) (int, error) {
	clear(b)
	inflated.Add(int64(len(b)))
	return len(b), nil
}

// TestCompressedMessageIsNotInflated checks that the transport does not decompress a message beyond the limits.
func TestCompressedMessageIsNotInflated(t *testing.T) {
	s := &service{}
	conn := dial(t, start(t, Limits{}, s))
	small := &wrapperspb.BytesValue{Value: []byte("small")}
	compressed := grpc.UseCompressor(bomb{}.Name())
	if err := conn.Invoke(t.Context(), "/test.Service/Echo", small, &wrapperspb.BytesValue{}, compressed); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the call of one request: %v", err)
	}
	sink, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/test.Service/Sink", compressed)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.SendMsg(small); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := sink.RecvMsg(&wrapperspb.BytesValue{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the stream: %v", err)
	}
	if n := inflated.Load(); n > 0 {
		t.Errorf("%d bytes came of two messages of a byte each", n)
	}
	if err := echo(t.Context(), conn, 1<<10); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	emptied(t, s.guard)
}
