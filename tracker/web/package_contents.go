package web

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// contentsOf reads the manifest of a package and fetches little else. Errors are for display.
func (s *Site) contentsOf(ctx context.Context, digest string) (*manifest, error) {
	from := &remoteFile{ctx: ctx, client: s.artifacts, digest: digest}
	defer from.stop()
	archive := tar.NewReader(from)
	for range maxPassed {
		header, err := archive.Next()
		switch {
		case status.Code(err) == codes.NotFound:
			return nil, errors.New("it is no longer on the tracker")
		case err != nil && from.failed != nil && !errors.Is(from.failed, io.EOF):
			return nil, fmt.Errorf("it cannot be read: %s", status.Convert(from.failed).Message())
		case err != nil:
			return nil, errors.New("it is not a package")
		case header.Name != manifestName:
			continue
		case header.Size > maxManifestBytes:
			return nil, fmt.Errorf("its %s has %d bytes, more than the limit of %d", manifestName, header.Size, maxManifestBytes)
		}
		return readManifest(archive)
	}
	return nil, fmt.Errorf("it has more than %d members before its %s", maxPassed, manifestName)
}

// remoteFile reads ranges of an artifact.
type remoteFile struct {
	ctx    context.Context
	client tilthv1.ArtifactServiceClient
	digest string
	offset int64
	chunk  []byte
	stream interface {
		Recv() (*tilthv1.DownloadArtifactResponse, error)
	}
	end    context.CancelFunc // cancels the stream
	failed error
}

// Read implements io.Reader.
func (f *remoteFile) Read(b []byte) (int, error) {
	for len(f.chunk) == 0 && f.failed == nil {
		f.chunk, f.failed = f.next()
	}
	if len(f.chunk) == 0 {
		return 0, f.failed
	}
	n := copy(b, f.chunk)
	f.chunk, f.offset = f.chunk[n:], f.offset+int64(n)
	return n, nil
}

func (f *remoteFile) next() ([]byte, error) {
	if f.stream == nil {
		ctx, end := context.WithCancel(f.ctx)
		stream, err := f.client.DownloadArtifact(ctx, &tilthv1.DownloadArtifactRequest{Digest: f.digest, Offset: uint64(f.offset)})
		if err != nil {
			end()
			return nil, err
		}
		f.stream, f.end = stream, end
	}
	part, err := f.stream.Recv()
	return part.GetData(), err
}

// stop cancels the stream, if any.
func (f *remoteFile) stop() {
	if f.stream != nil {
		f.end()
		f.stream = nil
	}
}

// Seek implements io.Seeker, except relative to the end, which is unknown.
func (f *remoteFile) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		offset += f.offset
	}
	if whence == io.SeekEnd || offset < 0 {
		return 0, errors.ErrUnsupported
	}
	if ahead := offset - f.offset; ahead >= 0 && ahead <= int64(len(f.chunk)) {
		f.chunk = f.chunk[ahead:]
	} else {
		f.stop()
		f.chunk = nil
	}
	f.offset = offset
	return offset, nil
}

// comparedContents compares the contents of two packages.
type comparedContents struct {
	Names   [2]string
	Facts   []comparedFact
	Kernels []comparedKernel
	// Failures explain what is not shown.
	Failures []string
}

// comparedFact is a property of both packages.
type comparedFact struct {
	Name string
	Of   [2]string
}

// comparedKernel is a kernel of one or both packages, matched by workload.
type comparedKernel struct {
	Name string
	Of   [2]*packageTask
	// Same is set if both have the same schedule for it.
	Same bool
}

// compareContents compares the first two packages of some jobs; nil with fewer than two. It limits concurrency, since
// parsing takes a multiple of a manifest's size.
func (s *Site) compareContents(r *http.Request, packages []packageRow) *comparedContents {
	if len(packages) < 2 {
		return nil
	}
	c := &comparedContents{}
	if !s.Door.May(r, tilthv1.ArtifactService_DownloadArtifact_FullMethodName, "") {
		c.Failures = []string{"What is in packages is for clients and admins."}
		return c
	}
	select {
	case s.comparisons <- struct{}{}:
		defer func() { <-s.comparisons }()
	case <-r.Context().Done():
		c.Failures = []string{"What is in packages was not read: the request ended."}
		return c
	}
	var both [2]*manifest
	for side := range both {
		p := packages[side]
		c.Names[side] = p.Name
		m, err := s.contentsOf(r.Context(), p.Digest)
		if err != nil {
			c.Failures = append(c.Failures, fmt.Sprintf("What is in %s is not shown: %v.", p.Name, err))
			continue
		}
		both[side] = m
	}
	if len(c.Failures) == 0 {
		c.Facts, c.Kernels = factsOf(both), kernelsOf(both)
	}
	return c
}
