package artifact_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// caller returns the identity in a call's header.
func caller(ctx context.Context) string {
	if names := metadata.ValueFromIncomingContext(ctx, "name"); len(names) > 0 {
		return names[0]
	}
	return ""
}

// as sets the identity of calls.
func as(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "name", name)
}

// serve serves a store. Each entry of breaks is the number of messages after which the next stream breaks.
func serve(t *testing.T, store *artifact.Store, breaks ...int32) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	var calls atomic.Int32
	server := grpc.NewServer(grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		if n := int(calls.Add(1)) - 1; n < len(breaks) {
			return h(srv, &brittle{ServerStream: ss, left: breaks[n]})
		}
		return h(srv, ss)
	}))
	tilthv1.RegisterArtifactServiceServer(server, artifact.NewService(store, caller))
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:artifacts",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// brittle is a stream that breaks after a number of messages.
type brittle struct {
	grpc.ServerStream
	left int32
}

func (b *brittle) step() error {
	if b.left--; b.left < 0 {
		return status.Error(codes.Unavailable, "line cut")
	}
	return nil
}

func (b *brittle) RecvMsg(m any) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.ServerStream.RecvMsg(m)
}

func (b *brittle) SendMsg(m any) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.ServerStream.SendMsg(m)
}

func randomFile(t *testing.T, size int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(content)
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func TestFileTravelsThroughBrokenLines(t *testing.T) {
	store, cache := open(t, artifact.Options{}), open(t, artifact.Options{})
	conn := serve(t, store, 3, 2, 9, 2, 4)
	client := artifact.NewClient(conn, cache, slog.New(slog.DiscardHandler))
	path, content := randomFile(t, 3<<20)
	ref, err := client.Upload(t.Context(), "candidates", path)
	if err != nil {
		t.Fatal(err)
	}
	if ref.GetDigest() != records.Digest(content) || ref.GetSizeBytes() != 3<<20 || ref.GetRole() != "candidates" {
		t.Errorf("reference is %v", ref)
	}
	if _, err := client.Upload(t.Context(), "candidates", path); err != nil {
		t.Errorf("uploading again: %v", err)
	}
	got, release, err := client.Download(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if b, err := os.ReadFile(got); err != nil || records.Digest(b) != ref.GetDigest() {
		t.Errorf("got other bytes, %v", err)
	}
	conn.Close()
	if _, release, err := client.Download(t.Context(), ref); err != nil {
		t.Errorf("what is in the cache needs no tracker: %v", err)
	} else {
		release()
	}
}

func TestDownloadOfWhatIsNotThere(t *testing.T) {
	client := artifact.NewClient(serve(t, open(t, artifact.Options{})), open(t, artifact.Options{}), slog.New(slog.DiscardHandler))
	ref := &tilthv1.ArtifactRef{Digest: records.Digest([]byte("x")), SizeBytes: 1}
	if _, _, err := client.Download(t.Context(), ref); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestUploadToAFullStore(t *testing.T) {
	store := open(t, artifact.Options{CapBytes: 10})
	client := artifact.NewClient(serve(t, store), nil, slog.New(slog.DiscardHandler))
	path, _ := randomFile(t, 2<<20)
	_, err := client.Upload(t.Context(), "candidates", path)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	if complete, received := store.Stat(records.Digest([]byte("x"))); complete || received != 0 {
		t.Error("something was stored")
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	rpc := tilthv1.NewArtifactServiceClient(serve(t, open(t, artifact.Options{})))
	if _, err := rpc.StatArtifact(t.Context(), &tilthv1.StatArtifactRequest{Digest: "../x"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("stat: %v", err)
	}
	for name, c := range map[string]struct {
		request *tilthv1.UploadArtifactRequest
		want    codes.Code
	}{
		"not a digest": {&tilthv1.UploadArtifactRequest{Digest: "../x"}, codes.InvalidArgument},
		"gap":          {&tilthv1.UploadArtifactRequest{Digest: records.Digest([]byte("hello")), SizeBytes: 5, Offset: 2}, codes.FailedPrecondition},
		"other bytes":  {&tilthv1.UploadArtifactRequest{Digest: records.Digest([]byte("hello")), SizeBytes: 5, Data: []byte("jello")}, codes.DataLoss},
		"wrong size":   {&tilthv1.UploadArtifactRequest{Digest: records.Digest([]byte("hello")), SizeBytes: 6, Data: []byte("hello")}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := rpc.UploadArtifact(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(c.request)
			if _, err := stream.CloseAndRecv(); status.Code(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
