package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"syscall"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/filesystem"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// maxDamage bounds the list in a report.
const maxDamage = 100

// Verify reads all pages and rows of the records file at path and reports damage; see Report. It writes nothing, needs
// a few megabytes of memory for any file size, and continues after damage, which is not an error. It returns
// ErrMissing if the file does not exist, ErrLocked while another process has it open for writing, and ErrVersion if an
// unknown version wrote it. A file that is no records file counts as damaged.
func Verify(ctx context.Context, path string) (*records.Report, error) {
	f, err := filesystem.OpenRegular(path)
	if err != nil {
		return nil, explain(path, err)
	}
	defer f.Close()
	if err := lockShared(ctx, f); err != nil {
		return nil, explain(path, err)
	}
	r := &verification{}
	if err := r.read(ctx, f); err != nil {
		return nil, explain(path, fmt.Errorf("verify: %w", err))
	}
	return &r.Report, nil
}

// verification is a check in progress.
type verification struct{ records.Report }

// lockShared waits briefly until no process has the file open for writing.
func lockShared(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, defaultLockTimeout)
	defer cancel()
	tick := time.Tick(50 * time.Millisecond)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return err
		}
		select {
		case <-ctx.Done():
			return bolterrors.ErrTimeout
		case <-tick:
		}
	}
}

func (r *verification) found(d *records.Damage) {
	r.Damaged++
	if len(r.Damage) < maxDamage {
		r.Damage = append(r.Damage, d)
	}
}

func (r *verification) read(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r.SizeBytes = info.Size()
	meta, err := checkSize(f, info)
	if err != nil {
		r.found(&records.Damage{Err: err})
		return nil
	}
	if d := checkMetas(f, meta); d != nil {
		r.found(d)
	}
	t := &tree{pageFile: pageFile{contextReader{ctx, f}, meta}, damaged: r.found, row: func(string, []byte, []byte, uint32) {}}
	all := t.buckets()
	if err := r.readSchema(t, all); err != nil {
		return err
	}
	t.row = r.row
	for _, b := range all {
		if b.name != string(bucketMeta) {
			t.bucket(b)
		}
	}
	r.Pages = meta.highWater
	// Pages below a damaged page were not visited.
	if n := t.unused(); n > 0 && r.Damaged == 0 {
		r.found(&records.Damage{Err: fmt.Errorf("%w: %d pages are neither used nor free", records.ErrDamaged, n)})
	}
	return t.err
}

// readSchema reads the file's metadata.
func (r *verification) readSchema(t *tree, all []bucketEntry) error {
	meta := map[string][]byte{}
	t.row = func(_ string, key, value []byte, _ uint32) {
		r.Rows++
		meta[string(key)] = value
	}
	for _, b := range all {
		if b.name == string(bucketMeta) {
			t.bucket(b)
		}
	}
	if t.err != nil {
		return t.err
	}
	err := checkVersion(meta[string(keyVersion)])
	if errors.Is(err, records.ErrVersion) {
		return err
	}
	if err != nil {
		r.found(&records.Damage{Bucket: string(bucketMeta), Key: keyVersion, Err: err})
	}
	r.Schema = SchemaVersion
	for key, value := range meta {
		if key != string(keyVersion) && key != string(keyCopied) {
			_, err := unseal(bucketMeta, []byte(key), value)
			r.damaged(err)
		}
	}
	return nil
}

// row checks a row.
func (r *verification) row(bucket string, key, value []byte, flags uint32) {
	r.Rows++
	if bucket == string(bucketDamaged) {
		r.SetAside++
	}
	if flags != 0 {
		r.found(&records.Damage{Bucket: bucket, Key: bytes.Clone(key), Err: fmt.Errorf("%w: it passes for a bucket", records.ErrDamaged)})
		return
	}
	value, err := unseal([]byte(bucket), key, value)
	if kind := messages[bucket]; err == nil && kind != nil {
		err = table{name: []byte(bucket)}.parse(key, value, proto.Clone(kind))
	}
	r.damaged(err)
}

// damaged reports an error that is damage.
func (r *verification) damaged(err error) {
	if d, is := errors.AsType[*records.Damage](err); is {
		r.found(d)
	}
}

// messages maps buckets to the messages in their values; other buckets have no messages.
var messages = map[string]proto.Message{
	string(bucketSpecs): &tilthv1.JobSpec{}, string(bucketJobs): &storev1.JobRow{}, string(bucketProgress): &tilthv1.TaskProgress{},
	string(bucketEvents): &storev1.EventRow{}, string(bucketBatches): &storev1.BatchRow{}, string(bucketClosed): &storev1.BatchRow{},
	string(bucketEnded): &storev1.EndedRow{}, string(bucketAgents): &tilthv1.Agent{}, string(bucketDevices): &storev1.DeviceRow{}, string(bucketRecords): &tilthv1.Record{},
}

// contextReader reads until a context ends.
type contextReader struct {
	ctx  context.Context
	file io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (c contextReader) ReadAt(b []byte, at int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.file.ReadAt(b, at)
}

// scrubBytes bounds the rows checked in one transaction, except for a single larger row.
const scrubBytes = 256 << 10

// Scrub implements records.File.
func (db *DB) Scrub(ctx context.Context, pace func(rows, sizeBytes int) error) error {
	for _, name := range buckets {
		if bytes.Equal(name, bucketMeta) {
			continue // its rows are read on every opening
		}
		for from := []byte(nil); ; {
			next, rows, size, err := db.scrubSome(name, from)
			if err != nil {
				return err
			}
			db.touch(int64(size))
			if err := pace(rows, size); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			// A key out of order might lead back.
			if next == nil || bytes.Compare(next, from) <= 0 {
				break
			}
			from = next
		}
	}
	return nil
}

// scrubSome checks some rows of a bucket from a key on (nil for the first), and returns the start of the next ones,
// nil after the last.
func (db *DB) scrubSome(name, from []byte) (next []byte, rows, size int, err error) {
	kind := messages[string(name)]
	err = db.view(func(tx *txn) error {
		t := tx.table(name)
		c := t.cursor()
		for k, stored := c.Seek(from); k != nil; k, stored = c.Next() {
			value, err := t.open(k, stored)
			if size >= scrubBytes && err == nil {
				next = bytes.Clone(k)
				return nil
			}
			rows, size = rows+1, size+len(k)+len(stored)
			if err == nil && kind != nil {
				err = t.parse(k, value, proto.Clone(kind))
			}
			tx.skipDamage(err)
		}
		return nil
	})
	return next, rows, size, err
}

// Layout of bbolt's meta pages (bbolt's internal/common/meta.go), as far as needed to detect a truncated file before
// mapping it: reading beyond the end of a mapped file kills the process.
const (
	metaAt         = 16 // after the page header
	metaBytes      = 64
	metaMagic      = 0xED0CDAED
	metaPageSizeAt = 8
	metaRootAt     = 16
	metaFreelistAt = 32
	metaHighAt     = 40
	metaTxidAt     = 48
	metaChecksumAt = 56
	minPageSize    = 512
	maxPageSize    = 1 << 20
)

type boltMeta struct {
	pageSize uint32
	root     uint64 // root page of the bucket of buckets
	freelist uint64 // page of the free list
	// highWater is the number of pages in use: the number of the first page beyond the end.
	highWater uint64
	txid      uint64
}

// checkFile returns an error unless the file at path is a complete bbolt file or empty. bbolt initializes empty files.
func checkFile(path string) error {
	f, err := filesystem.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = checkSize(f, info)
	return err
}

// checkSize returns an error unless a file contains all the pages that its meta page declares.
func checkSize(f io.ReaderAt, info os.FileInfo) (meta boltMeta, err error) {
	if !info.Mode().IsRegular() {
		return meta, fmt.Errorf("%w: not a regular file", records.ErrDamaged)
	}
	meta, err = newestMeta(f)
	if err != nil {
		return meta, err
	}
	if pages := uint64(info.Size()) / uint64(meta.pageSize); pages < meta.highWater {
		return meta, fmt.Errorf("%w: cut short, %d pages of at least %d", records.ErrDamaged, pages, meta.highWater)
	}
	return meta, nil
}

// newestMeta returns the valid meta page with the highest transaction number.
func newestMeta(f io.ReaderAt) (boltMeta, error) {
	best, ok := readMeta(f, 0)
	if ok {
		if second, ok := readMeta(f, int64(best.pageSize)); ok && second.txid > best.txid {
			best = second
		}
		return best, nil
	}
	for size := int64(minPageSize); size <= maxPageSize; size *= 2 {
		if second, ok := readMeta(f, size); ok && int64(second.pageSize) == size {
			return second, nil
		}
	}
	return boltMeta{}, records.ErrDamaged
}

// checkMetas returns damage unless both meta pages are valid. With one invalid, the file is in the state before its
// last transaction. Either a crash interrupted that transaction, or the page is damaged.
func checkMetas(f io.ReaderAt, newest boltMeta) *records.Damage {
	for id := range uint64(2) {
		if _, ok := readMeta(f, int64(id)*int64(newest.pageSize)); !ok {
			return &records.Damage{Page: id, Err: fmt.Errorf("%w: the last transaction, which it recorded, may be lost", records.ErrDamaged)}
		}
	}
	return nil
}

func readMeta(f io.ReaderAt, offset int64) (boltMeta, bool) {
	var b [metaBytes]byte
	if _, err := f.ReadAt(b[:], offset+metaAt); err != nil && !errors.Is(err, io.EOF) {
		return boltMeta{}, false
	}
	sum := fnv.New64a()
	sum.Write(b[:metaChecksumAt])
	meta := boltMeta{
		pageSize:  order.Uint32(b[metaPageSizeAt:]),
		root:      order.Uint64(b[metaRootAt:]),
		freelist:  order.Uint64(b[metaFreelistAt:]),
		highWater: order.Uint64(b[metaHighAt:]),
		txid:      order.Uint64(b[metaTxidAt:]),
	}
	valid := order.Uint32(b[:]) == metaMagic && order.Uint64(b[metaChecksumAt:]) == sum.Sum64() &&
		meta.pageSize >= minPageSize && meta.pageSize <= maxPageSize
	return meta, valid
}
