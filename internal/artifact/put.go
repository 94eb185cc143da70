package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tilth-dev/tilth/records"
)

// Upload describes an upload.
type Upload struct {
	// Identity is the identity that the space is accounted to; empty = a shared account.
	Identity string
	// Digest is the SHA-256 of the whole content, SizeBytes its length.
	Digest    string
	SizeBytes int64
	// Offset is where the upload resumes; see Received.
	Offset int64
}

// pieceBytes is the size of a write.
const pieceBytes = 32 << 10

var errStored = errors.New("artifact is there")

// brokenError is an interruption by the sender; the received bytes may be resumed.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// Put stores an artifact whose bytes src yields from an offset on. Space is taken as bytes arrive. If src fails
// midway, the received bytes are kept as a part, which the identity's next upload may resume (see Received). Of
// several uploads of the same artifact the first to finish stores it, and the others succeed at their next bytes. Put
// reads nothing if the artifact is present.
func (s *Store) Put(ctx context.Context, up Upload, src io.Reader) error {
	if err := s.checkUpload(up); err != nil {
		s.countRefusal(err)
		return err
	}
	if there, err := s.Confirm(ctx, up.Digest); there || err != nil {
		return err
	}
	u, err := s.begin(ctx, up)
	if u != nil {
		err = s.end(u, s.receive(u, up.SizeBytes, src))
	}
	if err != nil {
		s.countRefusal(err)
		return fmt.Errorf("store artifact %s: %w", up.Digest, err)
	}
	return nil
}

func (s *Store) checkUpload(up Upload) error {
	switch {
	case !records.ValidDigest(up.Digest):
		return fmt.Errorf("store artifact: %q is not a sha256", up.Digest)
	case up.SizeBytes < 0 || up.Offset < 0 || up.Offset > up.SizeBytes:
		return fmt.Errorf("store artifact %s: %w: %d from %d on", up.Digest, ErrSize, up.SizeBytes, up.Offset)
	case up.SizeBytes > s.CapBytes || roomOf(up.SizeBytes) > s.CapBytes:
		return fmt.Errorf("store artifact %s: %w", up.Digest, s.noRoom(up.SizeBytes))
	case roomOf(up.SizeBytes) > s.UploadBytes:
		return fmt.Errorf("store artifact %s: %w: it has %d bytes, and the uploads of an identity may take %d",
			up.Digest, ErrFull, up.SizeBytes, s.UploadBytes)
	}
	return nil
}

// receive writes what src yields. It returns nil only if all bytes arrived.
func (s *Store) receive(u *upload, sizeBytes int64, src io.Reader) error {
	buf := make([]byte, min(pieceBytes, sizeBytes+1))
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if err := s.write(u, buf[:n], sizeBytes); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case u.sizeBytes == sizeBytes: // with any error or none
			return s.write(u, nil, sizeBytes) // creates the file of an empty artifact
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: %d, not %d", ErrSize, u.sizeBytes, sizeBytes)
		default:
			return &brokenError{err}
		}
	}
}

// open opens an upload's file, which has sizeBytes bytes of earlier calls.
func (s *Store) open(u *upload, sizeBytes int64) error {
	if err := s.makeDir(filepath.Dir(u.path)); err != nil {
		return err
	}
	if u.sum == nil {
		u.sum = sha256.New()
		if err := s.hashPart(u, sizeBytes); err != nil {
			return err
		}
	}
	if name := u.name(uploadSuffix); name != u.path {
		if err := s.FS.Rename(u.path, name); err != nil {
			return err
		}
		u.path = name
	}
	var err error
	u.out, err = s.FS.OpenAppend(u.path)
	return err
}

func (s *Store) hashPart(u *upload, sizeBytes int64) error {
	if sizeBytes == 0 {
		return nil
	}
	f, err := s.FS.Open(u.path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(u.sum, f, sizeBytes)
	return err
}

// write appends received bytes.
func (s *Store) write(u *upload, b []byte, sizeBytes int64) error {
	if u.sizeBytes+int64(len(b)) > sizeBytes {
		return fmt.Errorf("%w: more than %d", ErrSize, sizeBytes)
	}
	s.mu.Lock()
	there := s.files[u.digest] != nil
	var err error
	if !there {
		err = s.grow(u, int64(len(b)))
	}
	s.mu.Unlock()
	if there {
		return errStored
	}
	if err != nil {
		return err
	}
	if u.out == nil {
		if err := s.open(u, u.sizeBytes-int64(len(b))); err != nil {
			return s.full(err)
		}
	}
	if _, err := u.out.Write(b); err != nil {
		return s.full(err)
	}
	u.sum.Write(b)
	return nil
}
