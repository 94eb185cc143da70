package bolt

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

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
