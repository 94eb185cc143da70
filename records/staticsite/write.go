package staticsite

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/internal/filesystem"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// chunkRecords and chunkContentBytes, decompressed, end a chunk. Groups only grow at the end, so all chunks but the
// last are unchanged from one export to the next.
const chunkRecords, chunkContentBytes = 4096, 16 << 20

// Source supplies the records of an export.
type Source struct {
	// List visits records grouped by target and workload in order, oldest first within a group.
	List func(visit func(*tilthv1.Record) error) error
	// Best returns the best record of a group at a level of numerics, or nil.
	Best func(of records.Group, numerics string) (*tilthv1.Record, error)
	// LeftOut is called for each record that is omitted because it is too large for any import.
	LeftOut func(why error)
}

// lockName is the lock file that serializes exports to a folder.
const lockName = ".lock"

// Write writes an export to a folder, creating it if necessary, and returns the number of records. Readers see the
// complete previous export until the index is replaced: chunks are written first, then the index, and only chunks that
// neither index lists are removed. An interruption or power failure leaves the previous export intact. It returns
// filesystem.ErrLocked while another process exports there.
func Write(dir string, from Source) (count uint64, err error) {
	count, err = write(dir, from)
	switch {
	case errors.Is(err, filesystem.ErrLocked):
		return 0, fmt.Errorf("export records to %s: %w, which exports there: try again when that has ended", dir, err)
	case err != nil:
		return 0, fmt.Errorf("export records to %s: %w", dir, err)
	}
	return count, nil
}

func write(dir string, from Source) (count uint64, err error) {
	if err := filesystem.MakeFolder(filepath.Join(dir, chunkFolder), 0o755); err != nil {
		return 0, err
	}
	lock, err := filesystem.TryLock(filepath.Join(dir, lockName))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	w := &writer{dir: dir, from: from, index: &Index{}}
	defer w.discard()
	if err := from.List(w.add); err != nil {
		return 0, err
	}
	if err := w.endGroup(); err != nil {
		return 0, err
	}
	return w.count, w.finish()
}

type writer struct {
	dir   string
	from  Source
	index *Index
	count uint64

	of       records.Group
	workload []byte // canonical form
	group    *Workload
	last     records.Key
	keys     hash.Hash
	chunk    *chunkWriter
}

// add writes a record without its job, which belongs to the tracker that made it.
func (w *writer) add(r *tilthv1.Record) error {
	if err := records.CheckSize(r); err != nil {
		w.from.LeftOut(err)
		return nil
	}
	if of := (records.Group{Target: r.GetTarget(), Workload: r.GetWorkloadDigest()}); w.group == nil || of != w.of {
		if err := w.endGroup(); err != nil {
			return err
		}
		w.of, w.group, w.keys, w.workload, w.last = of, &Workload{Workload: of.Workload}, sha256.New(), nil, records.Key{}
	}
	if len(r.GetWorkload()) > 0 {
		w.workload = r.GetWorkload()
	}
	if key := records.KeyOf(r.GetMeasurement()); key != w.last {
		w.last = key
		w.keys.Write(key[:])
	}
	r.JobId, r.Workload = "", nil
	if w.chunk == nil {
		var err error
		if w.chunk, err = newChunkWriter(filepath.Join(w.dir, chunkFolder)); err != nil {
			return err
		}
		r.Workload = w.workload
	}
	if err := w.chunk.add(r); err != nil {
		return err
	}
	w.count++
	if w.chunk.records < chunkRecords && w.chunk.content.count < chunkContentBytes {
		return nil
	}
	return w.endChunk()
}

func (w *writer) endChunk() error {
	if w.chunk == nil {
		return nil
	}
	chunk, err := w.chunk.close()
	w.chunk = nil
	w.group.Chunks = append(w.group.Chunks, chunk)
	w.group.Records += chunk.Records
	return err
}

// endGroup completes a group with its best records.
func (w *writer) endGroup() error {
	if w.group == nil {
		return nil
	}
	if err := w.endChunk(); err != nil {
		return err
	}
	best, err := w.best()
	if err != nil {
		return err
	}
	w.group.Best, w.group.Keys = best, hex.EncodeToString(w.keys.Sum(nil))
	if n := len(w.index.Targets); n == 0 || w.index.Targets[n-1].Target != w.of.Target {
		w.index.Targets = append(w.index.Targets, Target{Target: w.of.Target})
	}
	t := &w.index.Targets[len(w.index.Targets)-1]
	t.Workloads = append(t.Workloads, *w.group)
	w.group = nil
	return nil
}

func (w *writer) best() (*Chunk, error) {
	var last records.Key
	for level := range records.Levels {
		r, err := w.from.Best(w.of, records.LevelName(level))
		if err != nil {
			return nil, err
		}
		if r == nil || records.CheckSize(r) != nil {
			continue
		}
		key := records.KeyOf(r.GetMeasurement())
		if w.chunk != nil && key == last {
			continue // same as the previous level's
		}
		if w.chunk == nil {
			if w.chunk, err = newChunkWriter(filepath.Join(w.dir, chunkFolder)); err != nil {
				return nil, err
			}
		}
		r.JobId, last = "", key
		if err := w.chunk.add(r); err != nil {
			return nil, err
		}
	}
	if w.chunk == nil {
		return nil, nil
	}
	chunk, err := w.chunk.close()
	w.chunk = nil
	return &chunk, err
}

// finish replaces the index once its chunks are durable, and removes chunks that are no longer listed.
func (w *writer) finish() error {
	text, err := w.index.encode()
	if err != nil {
		return err
	}
	if err := filesystem.SyncFolder(filepath.Join(w.dir, chunkFolder)); err != nil {
		return err
	}
	keep := w.index.chunks()
	path := filepath.Join(w.dir, IndexName)
	if before, err := readIndex(path); err == nil {
		for digest := range before.chunks() {
			keep[digest] = true // a reader of the previous index may still fetch it
		}
	}
	err = filesystem.WriteFile(path, func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(w.dir, chunkFolder))
	for _, e := range entries {
		digest, is := strings.CutSuffix(e.Name(), chunkSuffix)
		if is && records.ValidDigest(digest) && !keep[digest] || strings.HasPrefix(e.Name(), partPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(w.dir, chunkFolder, e.Name())))
		}
	}
	return err
}

// discard removes leftovers of a failed export.
func (w *writer) discard() {
	if w.chunk != nil {
		_ = w.chunk.file.Close()
		_ = os.Remove(w.chunk.file.Name())
	}
}

func readIndex(path string) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readBounded(f, maxIndexBytes)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// readBounded reads at most limit bytes; more is an error.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%w: it has more than %d bytes", records.ErrDamaged, limit)
	}
	return text, err
}

// isMissing reports whether a file does not exist.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

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
