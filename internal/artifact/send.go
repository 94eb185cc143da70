package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Send reads an artifact from an offset and passes it to send in pieces. From offset 0 it verifies the content, and
// sends the last piece only if the digest matches. Otherwise it sets the artifact aside and returns ErrDamaged.
func (s *Store) Send(ctx context.Context, digest string, offset int64, send func([]byte) error) error {
	f, release, err := s.use(ctx, digest)
	if err != nil {
		return err
	}
	defer release()
	if offset < 0 || offset > f.sizeBytes {
		return fmt.Errorf("%w: artifact %s has %d bytes, none at %d", ErrSize, digest, f.sizeBytes, offset)
	}
	if err := s.send(ctx, f, offset, send); err != nil {
		return s.classifyReadError(f, err)
	}
	return nil
}

func (s *Store) send(ctx context.Context, f *file, offset int64, send func([]byte) error) error {
	src, err := s.read(ctx, f, offset)
	if err != nil {
		return err
	}
	defer src.Close()
	sum := sha256.New()
	buf := make([]byte, wire.PieceBytes)
	for at := offset; ; {
		n, err := io.ReadFull(src, buf[:min(wire.PieceBytes, f.sizeBytes-at)])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: it has %d bytes, not %d", ErrDamaged, at+int64(n), f.sizeBytes)
		} else if err != nil {
			return err
		}
		sum.Write(buf[:n])
		at += int64(n)
		if at == f.sizeBytes && offset == 0 {
			if err := matches(sum, f.digest); err != nil {
				return err
			}
		}
		if n > 0 {
			if err := send(buf[:n]); err != nil {
				return err
			}
		}
		if at == f.sizeBytes {
			return nil
		}
	}
}
