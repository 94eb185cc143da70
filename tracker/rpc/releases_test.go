package rpc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// received collects the messages sent to a stream.
type received struct {
	grpc.ServerStream
	bytes.Buffer
}

func (r *received) Send(m *tilthv1.DownloadReleaseResponse) error {
	_, err := r.Write(m.GetData())
	return err
}

func TestFilesOfAReleaseAreSentAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	archive := bytes.Repeat([]byte("tilth"), 300<<10)
	sums := "00 *a.tar.gz\n00  gone.tar.gz\n00  ../secret\n00  link.tar.gz\n"
	for name, data := range map[string][]byte{sumsFile: []byte(sums), signatureFile: []byte("signed"), "a.tar.gz": archive, "../secret": []byte("secret"), "unlisted": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "link.tar.gz")); err != nil {
		t.Fatal(err)
	}
	r := &Releases{Dir: dir}
	offer, err := r.GetRelease(t.Context(), &tilthv1.GetReleaseRequest{})
	if err != nil || string(offer.GetSums()) != sums || string(offer.GetSignature()) != "signed" {
		t.Errorf("got %v, %v", offer, err)
	}
	for name, want := range map[string]codes.Code{
		"a.tar.gz": codes.OK, "gone.tar.gz": codes.NotFound, "unlisted": codes.NotFound, "": codes.NotFound, "../secret": codes.NotFound,
		"link.tar.gz": codes.Internal, "00 *a.tar.gz\n": codes.NotFound,
	} {
		var to received
		if err := r.DownloadRelease(&tilthv1.DownloadReleaseRequest{Name: name}, &to); status.Code(err) != want {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
		if want == codes.OK && !bytes.Equal(to.Bytes(), archive) {
			t.Errorf("%q: got %d bytes", name, to.Len())
		}
	}
	if _, err := (&Releases{}).GetRelease(t.Context(), &tilthv1.GetReleaseRequest{}); status.Code(err) != codes.NotFound {
		t.Errorf("without a folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, sumsFile), make([]byte, maxSums+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.GetRelease(t.Context(), &tilthv1.GetReleaseRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("sums without end: %v", err)
	}
}
