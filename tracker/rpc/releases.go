package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// The files of a release, and bounds on their sizes.
const (
	sumsFile       = "SHA256SUMS"
	signatureFile  = sumsFile + ".minisig"
	maxSums        = 64 << 10
	maxSignature   = 4 << 10
	longestRelease = 256 // bytes of a file's name
)

// Releases serves the files of a release from a folder created by 'make dist'. It reads them anew for each call, so
// the folder may be replaced at any time. It verifies nothing; the agents do.
type Releases struct {
	tilthv1.UnimplementedReleaseServiceServer
	// Dir is the folder; empty offers no release.
	Dir string
}

// GetRelease implements tilthv1.ReleaseServiceServer.
func (r *Releases) GetRelease(context.Context, *tilthv1.GetReleaseRequest) (*tilthv1.GetReleaseResponse, error) {
	sums, err := r.read(sumsFile, maxSums)
	if err != nil {
		return nil, err
	}
	signature, err := r.read(signatureFile, maxSignature)
	if err != nil {
		return nil, err
	}
	return &tilthv1.GetReleaseResponse{Sums: sums, Signature: signature}, nil
}

// DownloadRelease implements tilthv1.ReleaseServiceServer.
func (r *Releases) DownloadRelease(req *tilthv1.DownloadReleaseRequest, stream grpc.ServerStreamingServer[tilthv1.DownloadReleaseResponse]) error {
	sums, err := r.read(sumsFile, maxSums)
	if err != nil {
		return err
	}
	if !lists(string(sums), req.GetName()) {
		return status.Errorf(codes.NotFound, "the release that the tracker offers has no file %q", req.GetName())
	}
	f, err := r.open(req.GetName())
	if err != nil {
		return err
	}
	defer f.Close()
	for piece := make([]byte, wire.PieceBytes); ; {
		n, err := io.ReadFull(f, piece)
		if n > 0 {
			if err := stream.Send(&tilthv1.DownloadReleaseResponse{Data: piece[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return status.Errorf(codes.Internal, "reading %s: %v", req.GetName(), err)
		}
	}
}

// lists reports whether the checksum file lists name. Names with separators are refused.
func lists(sums, name string) bool {
	if name == "" || len(name) > longestRelease || strings.ContainsAny(name, "/\n") {
		return false
	}
	for line := range strings.Lines(sums) {
		_, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		if file == " "+name || file == "*"+name { // text or binary mode, the same on Linux
			return true
		}
	}
	return false
}

// open opens a file in the folder. It refuses links that lead outside.
func (r *Releases) open(name string) (*os.File, error) {
	if r.Dir == "" {
		return nil, status.Error(codes.NotFound, "the tracker offers no release: start it with --releases")
	}
	f, err := os.OpenInRoot(r.Dir, name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, status.Errorf(codes.NotFound, "the tracker's folder of releases has no %s", name)
	case err != nil:
		return nil, status.Errorf(codes.Internal, "opening %s: %v", name, err)
	}
	return f, nil
}

// read returns the contents of a small file.
func (r *Releases) read(name string, limit int64) ([]byte, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "reading %s: %v", name, err)
	}
	return data, nil
}
