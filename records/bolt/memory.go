package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const (
	// defaultMemoryBytes is small compared to the memory of a tracker's machine.
	defaultMemoryBytes = 1 << 30
	// bytesPerImported is the memory that a byte of an imported record takes at most, while the store has it twice and
	// if its workload is new.
	bytesPerImported = 6
)

// inMemory is a store without the methods of records.File.
type inMemory struct {
	records.Store
	db *DB
}

// OpenMemory returns an empty store in memory, which is lost when it is closed. It suits tests, and farms whose
// records are not needed afterwards. opts.MaxSizeBytes is 1 GiB if 0.
func OpenMemory(opts Options) (records.Store, error) {
	const name = "memory"
	opts.MaxSizeBytes = cmp.Or(opts.MaxSizeBytes, defaultMemoryBytes)
	bolt, err := bbolt.Open(name, 0, &bbolt.Options{
		OpenFile: func(string, int, fs.FileMode) (*os.File, error) {
			fd, err := unix.MemfdCreate("tilth-records", unix.MFD_CLOEXEC)
			return os.NewFile(uintptr(fd), name), err
		},
		FreelistType: bbolt.FreelistMapType, PageSize: pageBytes, MaxSize: opts.MaxSizeBytes,
		NoSync: true, NoFreelistSync: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open a store in memory: %w", err)
	}
	db := &DB{path: name, bolt: bolt, inMemory: true, noted: map[string]bool{}}
	if err := bolt.Update(initSchema); err != nil {
		return nil, fmt.Errorf("open a store in memory: %w", errors.Join(err, bolt.Close()))
	}
	if err := db.begin(opts); err != nil {
		return nil, err
	}
	return &inMemory{db, db}, nil
}

// Import implements records.Measurements. It refuses more records than fit, since a store that is full fails for good.
func (m *inMemory) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	limit := m.db.bolt.MaxSize
	room := (int64(limit-m.db.bolt.AllocSize) - m.SizeBytes() + m.db.FreeBytes()) / bytesPerImported
	return m.Store.Import(ctx, func() (*tilthv1.Record, error) {
		r, err := next()
		if room -= int64(proto.Size(r)); err == nil && room < 0 {
			return nil, tooLarge(limit)
		}
		return r, err
	})
}

// tooLarge is the error of a store that would take more than a limit of memory.
func tooLarge(limit int) error {
	return fmt.Errorf("the records take more than %d bytes of memory: keep them in a file", limit)
}

const (
	// maxMappedBytes approximates the resident part of the mapped file. The kernel keeps evicted pages in its cache
	// while memory is free, so reusing them costs a minor fault without I/O.
	maxMappedBytes = 32 << 20
	// mappedPerPage is the ratio of pages that become resident to pages touched: the kernel maps neighbouring cached
	// pages as well.
	mappedPerPage = 4
)

// mapped counts the bytes of the mapped file touched since its pages were last released.
type mapped struct{ touched atomic.Int64 }

// touch records bytes as touched and releases all pages once there are many. It must not be called within a
// transaction.
func (db *DB) touch(bytes int64) {
	if db.mapped.touched.Add(mappedPerPage*bytes) < maxMappedBytes {
		return
	}
	db.mapped.touched.Store(0)
	// A transaction prevents remapping.
	_ = db.view(func(tx *txn) error {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, db.bolt.Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED) // advice only
		return nil
	})
}
