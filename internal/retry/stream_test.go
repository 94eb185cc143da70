package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// pieces is a service that refuses its first streams temporarily and then echoes.
type pieces struct {
	tilthv1.UnimplementedArtifactServiceServer
	putOff  int32 // number of refused streams
	refusal error
	late    bool // refuse after the first answer
	streams atomic.Int32
	got     []string
}

func (p *pieces) begin() error {
	if n := p.streams.Add(1); n <= p.putOff {
		return p.refusal
	}
	return nil
}

func (p *pieces) UploadArtifact(stream grpc.ClientStreamingServer[tilthv1.UploadArtifactRequest, tilthv1.UploadArtifactResponse]) error {
	if err := p.begin(); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&tilthv1.UploadArtifactResponse{})
		}
		if err != nil {
			return err
		}
		p.got = append(p.got, string(m.GetData()))
	}
}

func (p *pieces) DownloadArtifact(req *tilthv1.DownloadArtifactRequest, stream grpc.ServerStreamingServer[tilthv1.DownloadArtifactResponse]) error {
	if p.late {
		if err := stream.Send(&tilthv1.DownloadArtifactResponse{Data: []byte(req.GetDigest())}); err != nil {
			return err
		}
	}
	if err := p.begin(); err != nil {
		return err
	}
	return stream.Send(&tilthv1.DownloadArtifactResponse{Data: []byte(req.GetDigest())})
}

// client serves it and returns a client that reopens streams.
func (p *pieces) client(t *testing.T) tilthv1.ArtifactServiceClient {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	tilthv1.RegisterArtifactServiceServer(server, p)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStreamInterceptor(retry.LaterStream))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return tilthv1.NewArtifactServiceClient(conn)
}

var soon = wire.RefuseUntil(time.Millisecond, codes.Unavailable, wire.ReasonIssuer, "in a moment")

// upload sends pieces from one reused buffer.
func upload(ctx context.Context, c tilthv1.ArtifactServiceClient, pieces ...string) error {
	stream, err := c.UploadArtifact(ctx)
	if err != nil {
		return err
	}
	buffer := []byte{}
	for _, piece := range pieces {
		buffer = append(buffer[:0], piece...)
		if err := stream.Send(&tilthv1.UploadArtifactRequest{Data: buffer}); err != nil {
			break
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

func TestDeferredUploadsRestart(t *testing.T) {
	var small, large []string
	for i := range 5 {
		small = append(small, fmt.Sprint("piece ", i))
	}
	for i := range 24 { // more than the replay buffer holds
		large = append(large, strings.Repeat(string(rune('a'+i)), wire.PieceBytes))
	}
	for name, sent := range map[string][]string{"nothing": nil, "small": small, "large": large} {
		for putOff := range int32(3) {
			t.Run(fmt.Sprint(name, " ", putOff), func(t *testing.T) {
				p := &pieces{putOff: putOff, refusal: soon}
				err := upload(t.Context(), p.client(t), sent...)
				if err != nil || !slices.Equal(p.got, sent) || p.streams.Load() != putOff+1 {
					t.Errorf("%d of %d pieces arrived in %d streams, %v", len(p.got), len(sent), p.streams.Load(), err)
				}
			})
		}
	}
}

// download returns all received pieces.
func download(ctx context.Context, c tilthv1.ArtifactServiceClient) (got []string, err error) {
	stream, err := c.DownloadArtifact(ctx, &tilthv1.DownloadArtifactRequest{Digest: "digest"})
	for err == nil {
		var m *tilthv1.DownloadArtifactResponse
		if m, err = stream.Recv(); err == nil {
			got = append(got, string(m.GetData()))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return got, err
}

func TestDeferredDownloadsRestart(t *testing.T) {
	for name, c := range map[string]struct {
		of      *pieces
		within  time.Duration
		want    codes.Code
		got     int
		streams int32
	}{
		"put off": {of: &pieces{putOff: 2, refusal: soon}, within: time.Hour, got: 1, streams: 3},
		"refused": {of: &pieces{putOff: 1, refusal: away}, within: time.Hour, want: codes.Unavailable, streams: 1},
		"for longer than it may": {
			of: &pieces{putOff: 1, refusal: wire.RefuseUntil(2*time.Hour, codes.ResourceExhausted, wire.ReasonRate, "too often")}, within: time.Hour,
			want: codes.ResourceExhausted, streams: 1,
		},
		"after an answer": {of: &pieces{putOff: 1, refusal: soon, late: true}, within: time.Hour, want: codes.Unavailable, got: 1, streams: 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.within)
			defer cancel()
			got, err := download(ctx, c.of.client(t))
			if status.Code(err) != c.want || len(got) != c.got || c.of.streams.Load() != c.streams {
				t.Errorf("got %q in %d streams, %v", got, c.of.streams.Load(), err)
			}
		})
	}
}
