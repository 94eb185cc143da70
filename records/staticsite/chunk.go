package staticsite

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// partPrefix is the prefix of unfinished chunk files.
const partPrefix = "part-"

// chunkWriter writes a chunk to a file, which it names by its digest when complete.
type chunkWriter struct {
	file    *os.File
	digest  hash.Hash
	stored  counter
	content counter
	zip     *gzip.Writer
	lines   *records.Writer
	records uint64
}

// counter counts the bytes written through it.
type counter struct {
	to    io.Writer
	count int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.count += int64(n)
	return n, err
}

func newChunkWriter(dir string) (*chunkWriter, error) {
	f, err := os.CreateTemp(dir, partPrefix)
	if err != nil {
		return nil, err
	}
	w := &chunkWriter{file: f, digest: sha256.New()}
	w.stored.to = io.MultiWriter(f, w.digest)
	w.zip = gzip.NewWriter(&w.stored)
	w.content.to = w.zip
	w.lines, err = records.NewWriter(&w.content)
	return w, err
}

func (w *chunkWriter) add(r *tilthv1.Record) error {
	w.records++
	return w.lines.Write(r)
}

func (w *chunkWriter) close() (Chunk, error) {
	err := errors.Join(w.lines.Close(), w.zip.Close(), w.file.Chmod(0o644), w.file.Sync(), w.file.Close())
	c := Chunk{Digest: hex.EncodeToString(w.digest.Sum(nil)), SizeBytes: w.stored.count, ContentBytes: w.content.count, Records: w.records}
	if err == nil {
		err = c.check()
	}
	if err == nil {
		err = os.Rename(w.file.Name(), filepath.Join(filepath.Dir(w.file.Name()), filepath.Base(c.name())))
	}
	if err != nil {
		_ = os.Remove(w.file.Name())
	}
	return c, err
}

// errOtherDigest reports a chunk that does not match the index.
var errOtherDigest = fmt.Errorf("%w: it does not match the index", records.ErrDamaged)

// verify returns an error unless the file matches the chunk. It leaves the file at its beginning.
func (c Chunk) verify(f *os.File) error {
	digest := sha256.New()
	n, err := io.Copy(digest, io.LimitReader(f, c.SizeBytes+1))
	if err != nil {
		return err
	}
	if n != c.SizeBytes || hex.EncodeToString(digest.Sum(nil)) != c.Digest {
		return errOtherDigest
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// open returns a reader of a verified chunk's records, which are not validated. The decompressed size is bounded, and
// a size that differs from the index is reported as damage.
func (c Chunk) open(f io.Reader) (next func() (*tilthv1.Record, error), err error) {
	zip, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", records.ErrDamaged, err)
	}
	lines, err := records.NewReader(&bounded{from: zip, left: c.ContentBytes})
	if err != nil {
		return nil, err
	}
	return lines.ReadAny, nil
}

// bounded fails instead of reading beyond its limit.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < int64(len(p)) {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it has more bytes than the index says", records.ErrDamaged)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %v", records.ErrDamaged, err)
	}
	return n, err
}
