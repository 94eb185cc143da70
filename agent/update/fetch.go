package update

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// mostArchive and mostProgram bound what is downloaded and what is in it, in bytes.
const (
	mostArchive = 256 << 20
	mostProgram = 512 << 20
)

// fetch downloads an archive to a file. What does not have the digest is an error, and is not unpacked.
func fetch(ctx context.Context, client tilthv1.ReleaseServiceClient, name, digest, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stream, err := client.DownloadRelease(ctx, &tilthv1.DownloadReleaseRequest{Name: name})
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := receive(stream, io.MultiWriter(f, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%s was changed: its digest is %s, and %s was signed", name, got, digest)
	}
	return nil
}

func receive(stream grpc.ServerStreamingClient[tilthv1.DownloadReleaseResponse], to io.Writer) error {
	for total := 0; ; {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if total += len(m.GetData()); total > mostArchive {
			return fmt.Errorf("it has more than %d bytes", mostArchive)
		}
		if _, err := to.Write(m.GetData()); err != nil {
			return err
		}
	}
}

// unpack writes the file member of an archive to a path, as a program. All of it is on the disk afterwards.
func unpack(archive, member, path string) (err error) {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(packed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no %s", member)
		} else if err != nil {
			return err
		}
		if header.Name == member && header.Typeflag == tar.TypeReg {
			return writeProgram(io.LimitReader(files, mostProgram), path)
		}
	}
}

func writeProgram(from io.Reader, path string) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	return f.Sync()
}
