package staticsite

import (
	"context"
	"errors"
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
