package bolt

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/records"
)

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
