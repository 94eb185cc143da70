package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxRestarts bounds the restarts of a transfer whose bytes were corrupted in transit or evicted meanwhile.
const maxRestarts = 3

// Client transfers artifacts between this host and the tracker. It resumes transfers until the context ends.
type Client struct {
	rpc   tilthv1.ArtifactServiceClient
	cache *Store
	log   *slog.Logger
	retry retry.Policy
}

// NewClient returns a client that stores downloads in cache; cache may be nil for uploads only.
func NewClient(conn grpc.ClientConnInterface, cache *Store, log *slog.Logger) *Client {
	return &Client{rpc: tilthv1.NewArtifactServiceClient(conn), cache: cache, log: log}
}

// Upload sends the file at path unless the tracker has it, and returns a reference with the given role.
func (c *Client) Upload(ctx context.Context, role, path string) (*tilthv1.ArtifactRef, error) {
	ref, err := reference(role, path)
	if err != nil {
		return nil, fmt.Errorf("upload artifact: %w", err)
	}
	err = c.repeat(ctx, "UploadArtifact", func(ctx context.Context) error { return c.send(ctx, ref, path) })
	if err != nil {
		return nil, fmt.Errorf("upload artifact %s: %w", path, err)
	}
	return ref, nil
}

// Download fetches an artifact unless it is cached, and returns its path in the cache, which is valid until release is
// called. It returns ErrNotFound if the tracker does not have the artifact.
func (c *Client) Download(ctx context.Context, ref *tilthv1.ArtifactRef) (path string, release func(), err error) {
	c.cache.Pin(ref.GetDigest())
	defer c.cache.Unpin(ref.GetDigest())
	err = c.repeat(ctx, "DownloadArtifact", func(ctx context.Context) error { return c.receive(ctx, ref) })
	if err != nil {
		return "", nil, fmt.Errorf("download artifact %s: %w", ref.GetDigest(), err)
	}
	return c.cache.Use(ref.GetDigest())
}

// repeat resumes a transfer while the tracker is unavailable, and restarts it where that can help.
func (c *Client) repeat(ctx context.Context, what string, transfer func(context.Context) error) error {
	for restarts := 0; ; restarts++ {
		err := retry.Do(ctx, c.log, c.retry, what, transfer)
		code := status.Code(err)
		again := code == codes.DataLoss || code == codes.FailedPrecondition || errors.Is(err, ErrDigest) || errors.Is(err, ErrOffset)
		if err == nil || !again || restarts == maxRestarts {
			return err
		}
		c.log.Warn("transfer failed, restarting it", "call", what, "error", err)
	}
}

func (c *Client) send(ctx context.Context, ref *tilthv1.ArtifactRef, path string) error {
	stat, err := c.rpc.StatArtifact(ctx, &tilthv1.StatArtifactRequest{Digest: ref.GetDigest()})
	if err != nil || stat.GetComplete() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(int64(stat.GetReceivedBytes()), io.SeekStart); err != nil {
		return err
	}
	stream, err := c.rpc.UploadArtifact(ctx)
	if err != nil {
		return err
	}
	m := &tilthv1.UploadArtifactRequest{Digest: ref.GetDigest(), SizeBytes: ref.GetSizeBytes(), Offset: stat.GetReceivedBytes()}
	buf := make([]byte, wire.PieceBytes)
	for {
		n, readErr := io.ReadFull(f, buf)
		m.Data = buf[:n]
		// A failed Send returns only io.EOF; CloseAndRecv returns the cause.
		if err := stream.Send(m); err != nil || readErr != nil {
			break
		}
		m = &tilthv1.UploadArtifactRequest{}
	}
	_, err = stream.CloseAndRecv()
	return err
}

func (c *Client) receive(ctx context.Context, ref *tilthv1.ArtifactRef) error {
	digest := ref.GetDigest()
	if there, err := c.cache.Confirm(ctx, digest); there || err != nil {
		return err
	}
	received, err := c.cache.Received(ctx, "", digest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := &tilthv1.DownloadArtifactRequest{Digest: digest, Offset: uint64(received)}
	stream, err := c.rpc.DownloadArtifact(ctx, req)
	if err != nil {
		return err
	}
	src := &messageReader[*tilthv1.DownloadArtifactResponse]{receive: stream.Recv}
	err = c.cache.Put(ctx, Upload{Digest: digest, SizeBytes: int64(ref.GetSizeBytes()), Offset: received}, src)
	if src.err != nil && status.Code(src.err) == codes.NotFound {
		return fmt.Errorf("%w: %w", ErrNotFound, src.err)
	}
	return err
}

// messageReader reads the data from the messages of an upload or a download.
type messageReader[M interface{ GetData() []byte }] struct {
	receive func() (M, error)
	rest    []byte
	err     error
}

func (r *messageReader[M]) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		m, err := r.receive()
		if err != nil {
			r.err = err
			return 0, err
		}
		r.rest = m.GetData()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func reference(role, path string) (*tilthv1.ArtifactRef, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return nil, err
	}
	return &tilthv1.ArtifactRef{Role: role, Digest: hex.EncodeToString(sum.Sum(nil)), SizeBytes: uint64(size)}, nil
}
