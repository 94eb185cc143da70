package staticsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/internal/signing"
)

// Folder is an export in a local folder.
type Folder string

// Name implements Files.
func (f Folder) Name() string { return string(f) }

// Index implements Files.
func (f Folder) Index(context.Context) ([]byte, error) {
	file, err := signing.OpenRegular(filepath.Join(string(f), IndexName))
	if err != nil {
		if isMissing(err) {
			err = errors.New("it is not there: 'tilth records export --static' makes it")
		}
		return nil, err
	}
	defer file.Close()
	return readBounded(file, maxIndexBytes)
}

// Signature implements Files.
func (f Folder) Signature(context.Context) ([]byte, error) {
	file, err := signing.OpenRegular(filepath.Join(string(f), IndexName+signing.Suffix))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, maxSignatureBytes)
}

// Chunk implements Files.
func (f Folder) Chunk(_ context.Context, c Chunk) (*os.File, error) {
	return openVerified(filepath.Join(string(f), filepath.FromSlash(c.name())), c)
}

// openVerified opens a file and verifies that it is the chunk.
func openVerified(path string, c Chunk) (*os.File, error) {
	file, err := signing.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if err := c.verify(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

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
