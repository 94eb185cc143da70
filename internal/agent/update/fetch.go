package update

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxArchive and maxProgram bound the download and the unpacked program, in bytes. maxDownload bounds the
// download time, because nothing is timed on this host meanwhile.
const (
	maxArchive  = 256 << 20
	maxProgram  = 512 << 20
	maxDownload = 15 * time.Minute
)

// get downloads an archive, unpacks its program and returns the program's digest. Both steps disturb timings
// on this host.
func (u *Updater) get(ctx context.Context, client tilthv1.ReleaseServiceClient, name, digest string) (program string, err error) {
	if u.cfg.Lock != nil {
		release, err := u.cfg.Lock.Compute(ctx)
		if err != nil {
			return "", err
		}
		defer release()
	}
	ctx, cancel := context.WithTimeout(ctx, maxDownload)
	defer cancel()
	f, err := create(u.archive(), 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(u.archive())) }()
	if err := fetch(ctx, client, name+".tar.gz", digest, f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	program, err = unpack(f, name+"/tilth", u.next())
	if err != nil {
		return "", fmt.Errorf("unpacking %s.tar.gz: %w", name, err)
	}
	return program, nil
}

// create creates a new file and replaces any existing one.
func create(path string, mode os.FileMode) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|syscall.O_NOFOLLOW, mode)
}

// fetch downloads an archive and returns an error if its digest differs.
func fetch(ctx context.Context, client tilthv1.ReleaseServiceClient, name, digest string, to io.Writer) error {
	stream, err := client.DownloadRelease(ctx, &tilthv1.DownloadReleaseRequest{Name: name})
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := receive(stream, io.MultiWriter(to, sum)); err != nil {
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
		if total += len(m.GetData()); total > maxArchive {
			return fmt.Errorf("it has more than %d bytes", maxArchive)
		}
		if _, err := to.Write(m.GetData()); err != nil {
			return err
		}
	}
}

// unpack writes a member of an archive to an executable file, syncs it, and returns its digest.
func unpack(archive io.Reader, member, path string) (digest string, err error) {
	packed, err := gzip.NewReader(archive)
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(packed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("it has no %s", member)
		} else if err != nil {
			return "", err
		}
		if header.Name != member || header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Size > maxProgram {
			return "", fmt.Errorf("%s has more than %d bytes", member, maxProgram)
		}
		return writeProgram(files, path)
	}
}

func writeProgram(from io.Reader, path string) (digest string, err error) {
	f, err := create(path, 0o755)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), from); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), f.Sync()
}

// digestOf returns the digest of a file.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// release is the signed content: a version, and the digests of files by name.
type release struct {
	version string
	digests map[string]string
}

// sumsFile is the name of the digest list, which ends the trusted comment of its signature.
const sumsFile = "SHA256SUMS"

// sumLine matches a line of the list. Names cannot leave a folder.
var sumLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{64}) [ *]([0-9A-Za-z][0-9A-Za-z.+~_-]{0,255})$`)
})

// verified decodes a release and verifies its signature. Unverified content is not used.
func verified(offer *tilthv1.GetReleaseResponse, key signing.PublicKey) (release, error) {
	signature, err := signing.ParseSignature(offer.GetSignature())
	if err != nil {
		return release{}, err
	}
	comment, err := signature.Verify(bytes.NewReader(offer.GetSums()), key)
	if err != nil {
		return release{}, err
	}
	words := strings.Fields(comment)
	if len(words) != 3 || words[0] != "tilth" || words[2] != sumsFile {
		return release{}, fmt.Errorf("the signed file is not a release: its comment is %q", comment)
	}
	r := release{version: words[1], digests: map[string]string{}}
	for line := range strings.Lines(string(offer.GetSums())) {
		m := sumLine().FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return release{}, errors.New("the digests of the release are not readable")
		}
		r.digests[m[2]] = m[1]
	}
	return r, nil
}
