package bolt

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// mostMappedBytes is about how much of the mapped file is resident in this process at most. The kernel keeps the
	// pages for as long as it has memory, so what is used again costs a short fault and no reading.
	mostMappedBytes = 32 << 20
	// mappedPerPage is how much more becomes resident than is touched: the kernel maps what it has around a page, too.
	mappedPerPage = 4
)

// mapped counts what was touched of the mapped file since its pages were last given back.
type mapped struct{ touched atomic.Int64 }

// touch notes so many bytes as touched, and gives all pages back when they have become many. It is not called within a
// transaction.
func (db *DB) touch(bytes int64) {
	if db.mapped.touched.Add(mappedPerPage*bytes) < mostMappedBytes {
		return
	}
	db.mapped.touched.Store(0)
	// The transaction keeps the mapping where it is.
	_ = db.view(func(tx *txn) error {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, db.bolt.Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED) // advice only
		return nil
	})
}
