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

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/records"
)

// SchemaVersion is the version of the file's layout. Opening a file of an earlier one for writing makes it one of
// this; a file of a later one is refused.
//
//	1	each trial has a row among the events
//	2	trials that were recorded together have one
//	3	values have checksums, every group has a row for the best at each level, and meta has the file's life
const SchemaVersion = 3

// sealedSchema is the first version whose values have checksums.
const sealedSchema = 3

const defaultLockTimeout = 2 * time.Second

// pageBytes is the size of a new file's pages. A proposal of 32 candidates fits one, and a transaction of many results
// writes a quarter less often and allocates less than with the 4 KiB of bbolt's default. A file keeps the pages that
// it has until it is compacted.
const pageBytes = 16 << 10

// Options bound a store.
type Options struct {
	// LockTimeout is how long to wait for another process to close the file; 0 = 2 s.
	LockTimeout time.Duration
	// MaxSizeBytes bounds the file; a commit that would outgrow it fails. 0 = the disk.
	MaxSizeBytes int
	// ReserveBytes of addresses are reserved for the file's mapping, so that it does not move before the file is so
	// large: a move waits for all readers, and lets none begin meanwhile. 0 = what the file needs now.
	ReserveBytes int
	// Life names the life that begins when the file is opened for writing; empty = a name is drawn at random. A name
	// that was used before is for those only who want the same names again, of a file that nobody keeps. At most 16 of
	// a to z and 2 to 7 (see IsLife).
	Life string
	// converts opens a file into which a conversion has copied only a part, too.
	converts bool
}

// DB is an open records file. Its methods may be called from many goroutines.
type DB struct {
	path string
	bolt *bbolt.DB
	// sealed says that values have checksums.
	sealed   bool
	life     string
	restored time.Time // when the copy was made that this life began as; zero = it is none
	// groups belong to the commit loop.
	groups *groups
	mapped mapped

	mu      sync.Mutex
	queue   []commit
	failed  error
	stuck   error // what kept a transaction from beginning; see lose
	observe func(records.Transaction)
	closing bool
	imports uint64 // begun since the file was opened
	// Damaged rows that were met, by bucket and key, and who is told of them.
	noted    map[string]bool
	damaged  uint64
	onDamage func(*records.Damage)
	early    []*records.Damage // met before somebody asked to be told
	wake     chan struct{}
	stopped  chan struct{}
}

// Open opens the records file at path for writing, and creates it when there is none. One process at a time can.
func Open(path string, opts Options) (*DB, error) {
	if err := create(path); err != nil {
		return nil, fmt.Errorf("create records file %s: %w", path, err)
	}
	return OpenExisting(path, opts)
}

// OpenExisting is Open but for creating the file: ErrMissing when there is none.
func OpenExisting(path string, opts Options) (*DB, error) {
	db, err := openUpgraded(path, opts)
	if err != nil {
		return nil, err
	}
	// Who was killed may have left the name of the file to the page cache. What is seen from here on is on the disk.
	if db.life = opts.Life; db.life == "" {
		db.life = records.NewLife()
	}
	err = guard(func() error { return errors.Join(syncName(path), db.bolt.Update(db.beginLife)) })
	if err != nil {
		db.bolt.Close()
		return nil, explain(path, err)
	}
	db.groups = newGroups()
	db.wake = make(chan struct{}, 1)
	db.stopped = make(chan struct{})
	go db.commitLoop()
	if err := db.settleImports(); err != nil {
		return nil, explain(path, fmt.Errorf("finish an import that was interrupted: %w", errors.Join(err, db.Close())))
	}
	return db, nil
}

// syncName brings the name of a file to the disk.
func syncName(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return disk.SyncFolder(filepath.Dir(path))
}

// OpenReadOnly opens the records file at path for look-ups. Many processes can, while none has it open for writing. A
// file in which an import was interrupted is opened for writing first, for the import to be brought to its end.
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
	if opts.LockTimeout == 0 {
		opts.LockTimeout = defaultLockTimeout
	}
	for {
		db, err := openOnce(path, opts, readOnly)
		switch {
		case errors.Is(err, errReplaced):
		case errors.Is(err, syscall.ENOMEM) && opts.ReserveBytes > 0:
			opts.ReserveBytes = 0 // the process may not have so many addresses
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
	// Who was killed may have left its last transaction to the page cache. The next one writes over pages that only
	// the transaction before that needs, on which a power cut falls back for as long as the last one's meta page is
	// not on the disk.
	if !readOnly {
		if err := guard(bolt.Sync); err != nil {
			return nil, errors.Join(explain(path, err), guard(bolt.Close))
		}
	}
	db := &DB{path: path, bolt: bolt, noted: map[string]bool{}}
	// Before anything is looked up: on pages that lead in a circle bbolt fills its stack, which ends the process.
	if err = db.checkTree(file); err == nil {
		err = guard(func() error {
			return bolt.View(func(tx *bbolt.Tx) error {
				if err := db.checkSchema(tx); err != nil {
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

// checkTree checks all pages of an open file but the leaves of its buckets.
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

// release gives up the lock of a file that bbolt failed to open. Where it panicked it left the file open and mapped,
// and a mapping keeps the lock even after closing; where it closed the file, this does nothing.
func release(file *os.File) {
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	file.Close()
}

// create makes an empty records file at path unless something is there. It appears whole or not at all.
func create(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := disk.MakeFolder(dir, 0o755); err != nil {
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
		// A file system without links; renaming could only overtake another process that creates it just now.
		if err := os.Rename(f.Name(), path); err != nil {
			return err
		}
	}
	return nil
}

func initSchema(tx *bbolt.Tx) error {
	return errors.Join(makeBuckets(tx, buckets), makeBuckets(tx, later), putVersion(tx))
}

// putVersion stores the version without a checksum, so that every version of Tilth can read it.
func putVersion(tx *bbolt.Tx) error {
	return tx.Bucket(bucketMeta).Put(keyVersion, binary.BigEndian.AppendUint32(nil, SchemaVersion))
}

// checkSchema checks that the file is one that this version reads, and finds out whether its values have checksums.
func (db *DB) checkSchema(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return fmt.Errorf("%w: it has no version", records.ErrDamaged)
	}
	version, err := schemaOf(meta.Get(keyVersion), meta.Get(keyLife))
	if err != nil {
		return err
	}
	db.sealed = version >= sealedSchema
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("%w: bucket %q is missing", records.ErrDamaged, name)
		}
	}
	return nil
}

// schemaOf is the version that a file says it has. A file that had a life since it has checksums cannot be of an
// earlier one, whatever became of its version.
func schemaOf(version, life []byte) (uint32, error) {
	if len(version) != 4 {
		return 0, fmt.Errorf("%w: it has no version", records.ErrDamaged)
	}
	v := binary.BigEndian.Uint32(version)
	if life != nil && v < sealedSchema {
		return 0, fmt.Errorf("%w: its version, %d, is damaged", records.ErrDamaged, v)
	}
	if v < 1 || v > SchemaVersion {
		return 0, fmt.Errorf("%w: schema %d, this one reads 1 to %d", records.ErrVersion, v, SchemaVersion)
	}
	return v, nil
}

// explain names the file and the remedy.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("records file %s: %w: tune a model first, or name another file", path, records.ErrMissing)
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("records file %s: %w: stop it, or ask it instead (--tracker)", path, records.ErrLocked)
	case errors.Is(err, records.ErrUnfinished):
		return fmt.Errorf("records file %s: %w: run 'tilth tracker convert' again, or move the file away to begin anew", path, err)
	case errors.Is(err, records.ErrVersion):
		return fmt.Errorf("records file %s: %w: export it with the version that wrote it and import it here", path, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("records file %s: %w (%v): restore a copy, or move it away to begin anew", path, records.ErrDamaged, err)
	case errors.Is(err, records.ErrDamaged):
		return fmt.Errorf("records file %s: %w: restore a copy, or move it away to begin anew", path, err)
	}
	return fmt.Errorf("records file %s: %w", path, err)
}

// SizeBytes returns the size of the file's used part.
func (db *DB) SizeBytes() (size int64) {
	_ = db.view(func(tx *txn) error {
		size = tx.Size()
		return nil
	})
	return size
}

// FreeBytes is the part of it that was used once and will be used again before the file grows.
func (db *DB) FreeBytes() (size int64) {
	// The transaction keeps the mapping where it is, of which the library reads.
	_ = db.view(func(*txn) error {
		stats := db.bolt.Stats()
		size = int64(stats.FreePageN+stats.PendingPageN) * int64(db.bolt.Info().PageSize)
		return nil
	})
	return size
}

// Path is the file's name.
func (db *DB) Path() string { return db.path }

// view runs a read transaction; damage met on the way is an error that names the file.
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
		db.lose(err)
	}
	return err
}

// lose has all that follows fail. Where bbolt panics while a transaction begins, since the file's first pages are gone
// for instance, it keeps its locks: the next transaction would wait for ever.
func (db *DB) lose(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.stuck, db.failed = cmp.Or(db.stuck, err), cmp.Or(db.failed, err)
}

// lost is what kept a transaction from beginning; nil while nothing did.
func (db *DB) lost() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.stuck
}

// Close waits for the commits already handed in, and closes the file. One of which a transaction could not begin stays
// open until the process ends.
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
