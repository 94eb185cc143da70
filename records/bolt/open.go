package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/records"
)

// SchemaVersion is the version of the file's layout. Files of other versions are refused.
const SchemaVersion = 3

const defaultLockTimeout = 2 * time.Second

// pageBytes is the page size of new files. A proposal of 32 candidates fits one page; compared with bbolt's default of
// 4 KiB, transactions with many results make a quarter fewer writes and allocate less. An existing file keeps its page
// size until it is compacted.
const pageBytes = 16 << 10

// Options configures a store.
type Options struct {
	// LockTimeout is how long to wait for another process to close the file; 0 means 2 s.
	LockTimeout time.Duration
	// MaxSizeBytes bounds the file; a commit that would exceed it fails. 0 means no bound.
	MaxSizeBytes int
	// ReserveBytes is the address space reserved for the mapping. Remapping a file that outgrows it waits for all
	// readers and blocks new ones. 0 reserves the current size.
	ReserveBytes int
	// Generation names the generation that starts when the file is opened for writing; empty draws a random name.
	// Reusing a name is only safe for files that are thrown away, such as in reproducible tests. At most 16 of a to z
	// and 2 to 7 (see IsGeneration).
	Generation string
	// converts permits opening a file with an unfinished conversion.
	converts bool
}

// DB is an open records file. Its methods are safe for concurrent use.
type DB struct {
	path       string
	bolt       *bbolt.DB
	inMemory   bool // there is no file
	generation string
	restored   time.Time // when the backup that started this generation was made; zero without one
	// groups is owned by the commit loop.
	groups *groups
	mapped mapped

	mu      sync.Mutex
	queue   []commit
	failed  error
	stuck   error // why a transaction could not begin; see lose
	observe func(records.Transaction)
	closing bool
	imports uint64 // number of imports since the file was opened
	// noted holds the damaged rows found, by bucket and key; onDamage receives them.
	noted    map[string]bool
	damaged  uint64
	onDamage func(*records.Damage)
	early    []*records.Damage // found before OnDamage was called
	wake     chan struct{}
	stopped  chan struct{}
}

// Open opens the records file at path for writing, creating it if necessary. It is exclusive among processes.
func Open(path string, opts Options) (*DB, error) {
	if err := create(path); err != nil {
		return nil, fmt.Errorf("create records file %s: %w", path, err)
	}
	return OpenExisting(path, opts)
}

// OpenExisting is like Open, but returns ErrMissing if the file does not exist.
func OpenExisting(path string, opts Options) (*DB, error) {
	db, err := open(path, opts, false)
	if err != nil {
		return nil, err
	}
	// A killed process may have left the file's name only in the page cache; sync it before anyone relies on it.
	if err := syncName(path); err != nil {
		db.bolt.Close()
		return nil, explain(path, err)
	}
	if err := db.begin(opts); err != nil {
		return nil, err
	}
	return db, nil
}

// begin starts a generation and the writer. If it fails, it closes the file.
func (db *DB) begin(opts Options) error {
	db.generation = cmp.Or(opts.Generation, records.NewGeneration())
	if err := guard(func() error { return db.bolt.Update(db.beginGeneration) }); err != nil {
		db.bolt.Close()
		return explain(db.path, err)
	}
	db.groups = &groups{known: map[records.Group]*group{}}
	db.wake = make(chan struct{}, 1)
	db.stopped = make(chan struct{})
	go db.commitLoop()
	if err := db.settleImports(); err != nil {
		return explain(db.path, fmt.Errorf("finish an import that was interrupted: %w", errors.Join(err, db.Close())))
	}
	return nil
}

// syncName syncs the directory entry of a file.
func syncName(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return filesystem.SyncFolder(filepath.Dir(path))
}

// OpenReadOnly opens the records file at path for look-ups. Any number of processes may do so while none has it open
// for writing. If an import was interrupted, it first opens the file for writing to complete it.
func OpenReadOnly(path string, opts Options) (*DB, error) {
	db, err := open(path, opts, true)
	if err != nil {
		return nil, err
	}
	whole, _, err := db.importsLeft()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if len(whole) == 0 {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	writing, err := OpenExisting(path, opts)
	if err != nil {
		return nil, err
	}
	if err := writing.Close(); err != nil {
		return nil, err
	}
	return open(path, opts, true)
}

func open(path string, opts Options, readOnly bool) (*DB, error) {
	opts.LockTimeout = cmp.Or(opts.LockTimeout, defaultLockTimeout)
	for {
		db, err := openOnce(path, opts, readOnly)
		switch {
		case errors.Is(err, errReplaced):
		case errors.Is(err, syscall.ENOMEM) && opts.ReserveBytes > 0:
			opts.ReserveBytes = 0 // address space may be limited
		default:
			return db, err
		}
	}
}

func openOnce(path string, opts Options, readOnly bool) (*DB, error) {
	if err := checkFile(path); err != nil {
		return nil, explain(path, err)
	}
	var bolt *bbolt.DB
	var file *os.File
	err := guard(func() (err error) {
		bolt, err = bbolt.Open(path, 0o644, &bbolt.Options{
			Timeout:         opts.LockTimeout,
			ReadOnly:        readOnly,
			FreelistType:    bbolt.FreelistMapType,
			MaxSize:         opts.MaxSizeBytes,
			InitialMmapSize: opts.ReserveBytes,
			OpenFile: func(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
				file, err = os.OpenFile(name, flag, mode)
				return file, err
			},
		})
		return err
	})
	if err != nil {
		if file != nil {
			release(file)
		}
		return nil, explain(path, err)
	}
	if replaced(path, file) {
		return nil, errors.Join(errReplaced, bolt.Close())
	}
	// A killed process may have left its last transaction only in the page cache. The next transaction overwrites
	// pages of the one before, to which a power failure would revert as long as the last meta page is not on disk.
	if !readOnly {
		if err := guard(bolt.Sync); err != nil {
			return nil, errors.Join(explain(path, err), guard(bolt.Close))
		}
	}
	db := &DB{path: path, bolt: bolt, noted: map[string]bool{}}
	// Check before any look-up: pages that form a cycle overflow bbolt's stack, which ends the process.
	if err = db.checkTree(file); err == nil {
		err = guard(func() error {
			return bolt.View(func(tx *bbolt.Tx) error {
				if err := checkSchema(tx); err != nil {
					return err
				}
				return db.checkConverted(tx, opts)
			})
		})
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), guard(bolt.Close))
	}
	return db, nil
}

// checkTree checks all pages of an open file except the leaves of its buckets.
func (db *DB) checkTree(f *os.File) error {
	meta, err := newestMeta(f)
	if err != nil {
		return err
	}
	if d := checkMetas(f, meta); d != nil {
		db.note(d)
	}
	return checkPages(pageFile{f, meta})
}

// release unlocks a file that bbolt failed to open. After a panic bbolt leaves the file open and mapped, and the
// mapping keeps the lock even after closing. If bbolt closed the file, this has no effect.
func release(file *os.File) {
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	file.Close()
}

// create atomically creates an empty records file at path unless it exists.
func create(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := filesystem.MakeFolder(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	bolt, err := bbolt.Open(f.Name(), 0o644, &bbolt.Options{FreelistType: bbolt.FreelistMapType, PageSize: pageBytes})
	if err != nil {
		return err
	}
	if err := errors.Join(bolt.Update(initSchema), bolt.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		// On a file system without links, renaming can only race with another process that creates the file right now.
		if err := os.Rename(f.Name(), path); err != nil {
			return err
		}
	}
	return nil
}

func initSchema(tx *bbolt.Tx) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return putVersion(tx)
}

// putVersion stores the version without a checksum, so that every version of Tilth can read it.
func putVersion(tx *bbolt.Tx) error {
	return tx.Bucket(bucketMeta).Put(keyVersion, binary.BigEndian.AppendUint32(nil, SchemaVersion))
}

// checkSchema verifies that this version can read the file.
func checkSchema(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return fmt.Errorf("%w: it has no version", records.ErrDamaged)
	}
	if err := checkVersion(meta.Get(keyVersion)); err != nil {
		return err
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("%w: bucket %q is missing", records.ErrDamaged, name)
		}
	}
	return nil
}

// checkVersion returns an error unless the schema version of a file is this one.
func checkVersion(version []byte) error {
	if len(version) != 4 {
		return fmt.Errorf("%w: it has no version", records.ErrDamaged)
	}
	if v := binary.BigEndian.Uint32(version); v != SchemaVersion {
		return fmt.Errorf("%w: schema %d, this one reads %d", records.ErrVersion, v, SchemaVersion)
	}
	return nil
}

// explain adds the file and the remedy to an error.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("records file %s: %w: tune a model first, or name another file", path, records.ErrMissing)
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("records file %s: %w: stop it, or ask it instead (--tracker)", path, records.ErrLocked)
	case errors.Is(err, records.ErrUnfinished):
		return fmt.Errorf("records file %s: %w: run 'tilth tracker convert' again, or move the file away to start empty", path, err)
	case errors.Is(err, records.ErrVersion):
		return fmt.Errorf("records file %s: %w: export it with the version that wrote it and import it here", path, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("records file %s: %w (%v): restore a backup, or move the file to start empty", path, records.ErrDamaged, err)
	case errors.Is(err, records.ErrDamaged):
		return fmt.Errorf("records file %s: %w: restore a backup, or move the file to start empty", path, err)
	}
	return fmt.Errorf("records file %s: %w", path, err)
}

// SizeBytes implements records.Store.
func (db *DB) SizeBytes() (size int64) {
	_ = db.view(func(tx *txn) error {
		size = tx.Size()
		return nil
	})
	return size
}

// FreeBytes implements records.File.
func (db *DB) FreeBytes() (size int64) {
	// A transaction prevents remapping while Info reads the file.
	_ = db.view(func(*txn) error {
		stats := db.bolt.Stats()
		size = int64(stats.FreePageN+stats.PendingPageN) * int64(db.bolt.Info().PageSize)
		return nil
	})
	return size
}

// Path implements records.File.
func (db *DB) Path() string { return db.path }

// view runs a read transaction. Damage yields an error that names the file.
func (db *DB) view(read func(tx *txn) error) error {
	if err := db.lost(); err != nil {
		return err
	}
	began := false
	err := guard(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			began = true
			return read(&txn{Tx: tx, db: db})
		})
	})
	if !errors.Is(err, records.ErrDamaged) {
		return err
	}
	err = explain(db.path, err)
	if !began {
		db.setLost(err)
	}
	return err
}

// setLost makes all further operations fail. When bbolt panics while beginning a transaction, for instance because the
// first pages are gone, it keeps its locks, and the next transaction would block forever.
func (db *DB) setLost(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.stuck, db.failed = cmp.Or(db.stuck, err), cmp.Or(db.failed, err)
}

// lost returns why no transaction can begin, or nil.
func (db *DB) lost() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.stuck
}

// Close implements records.Store. After lose, the file stays open until the process ends.
func (db *DB) Close() error {
	if db.stopped != nil {
		db.mu.Lock()
		db.closing = true
		db.mu.Unlock()
		db.wakeLoop()
	}
	if err := db.lost(); err != nil {
		return err
	}
	if db.stopped != nil {
		<-db.stopped
	}
	return db.bolt.Close()
}
