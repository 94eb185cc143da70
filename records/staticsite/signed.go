package staticsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tilth-dev/tilth/internal/signing"
)

// maxSignatureBytes bounds the signature of an index.
const maxSignatureBytes = 16 << 10

// Signed wraps an export whose index is signed by a key; the index covers all chunks by digest. What it returns is
// what was verified, even if the files change.
type Signed struct {
	Files
	Key signing.PublicKey
}

// Index implements Files.
func (s Signed) Index(ctx context.Context) ([]byte, error) {
	text, err := s.Files.Index(ctx)
	if err != nil {
		return nil, err
	}
	signed, err := s.Signature(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s", signing.ErrUnsigned, IndexName+signing.Suffix)
	}
	if err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	signature, err := signing.ParseSignature(signed)
	if err != nil {
		return nil, err
	}
	if _, err := signature.Verify(bytes.NewReader(text), s.Key); err != nil {
		return nil, fmt.Errorf("it is not verified: %w", err)
	}
	return text, nil
}

// Chunk implements Files.
func (s Signed) Chunk(ctx context.Context, c Chunk) (*os.File, error) {
	file, err := s.Files.Chunk(ctx, c)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sealed, err := signing.Sealed(file, c.SizeBytes)
	if err != nil {
		return nil, err
	}
	if err := c.verify(sealed); err != nil {
		return nil, errors.Join(err, sealed.Close())
	}
	return sealed, nil
}
