// Package artifact keeps files by their sha256 and carries them between tracker and agents. The same store serves the
// tracker, which agents upload to, and each agent, as a cache of what it downloaded.
package artifact

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/records"
)

var (
	// ErrNotFound is returned when an artifact is not, or no longer, in the store.
	ErrNotFound = errors.New("artifact not found")
	// ErrOffset is returned when an upload does not begin where the part received before ends.
	ErrOffset = errors.New("upload does not begin where the last one ended")
	// ErrDigest is returned when the bytes received do not have the digest; they are thrown away.
	ErrDigest = errors.New("bytes do not have the digest")
	// ErrSize is returned when more or fewer bytes come than were announced.
	ErrSize = errors.New("bytes do not have the size announced")
	// ErrFull is returned when there is no room: the disk is full, or all that is stored is in use.
	ErrFull = errors.New("no space for artifacts")
)

const partSuffix = ".part"

// DefaultCapBytes is the size cap when none is set.
const DefaultCapBytes = 8 << 30

// Options configure a store.
type Options struct {
	// Dir holds the files; it is created.
	Dir string
	// CapBytes bounds what is stored; 0 = DefaultCapBytes. What was not used for longest goes first.
	CapBytes int64
	Logger   *slog.Logger
	// FS writes the files; nil = OS{}.
	FS FS
}

// Store is a folder of files named by their sha256, under a size cap. A file appears whole or not at all; parts of
// unfinished uploads are kept aside to be resumed. Its methods may be called from many goroutines.
type Store struct {
	dir string
	cap int64
	log *slog.Logger
	fs  FS

	mu      sync.Mutex
	entries map[string]*entry
	lru     *list.List // of *entry, least recently used first
	used    int64
	pins    map[string]int
	folders map[string]bool // whose names are on the disk
}

// entry is a file, whole or in part.
type entry struct {
	digest   string
	size     int64 // bytes it takes, or will take when an upload under way ends
	complete bool
	busy     chan struct{} // closed when the upload under way ends; nil when there is none
	place    *list.Element
}

// Open opens the store in a folder.
func Open(opts Options) (*Store, error) {
	s := &Store{
		dir: opts.Dir, cap: opts.CapBytes, log: opts.Logger, fs: opts.FS,
		entries: map[string]*entry{}, lru: list.New(), pins: map[string]int{}, folders: map[string]bool{},
	}
	if s.cap == 0 {
		s.cap = DefaultCapBytes
	}
	if s.fs == nil {
		s.fs = OS{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := disk.MakeFolder(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("open artifact store %s: %w", s.dir, err)
	}
	return s, nil
}

// scan enters what is in the folder, in the order of last use. All names in it are on the disk afterwards: who was killed may have made
// some that are not yet.
func (s *Store) scan() error {
	type found struct {
		entry *entry
		used  time.Time
	}
	var all []found
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			s.folders[path] = true
			return s.fs.SyncDir(path)
		}
		name, part := strings.CutSuffix(d.Name(), partSuffix)
		info, err := d.Info()
		if err != nil || !records.ValidDigest(name) {
			return err
		}
		all = append(all, found{&entry{digest: name, size: info.Size(), complete: !part}, info.ModTime()})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.entry.digest, b.entry.digest))
	})
	for _, f := range all {
		if other := s.entries[f.entry.digest]; other != nil {
			// A part beside the whole is left over from a kill between two steps.
			_ = s.fs.Remove(s.partPath(f.entry.digest))
			other.complete = true
			continue
		}
		s.insert(f.entry)
	}
	return nil
}

func (s *Store) insert(e *entry) {
	e.place = s.lru.PushBack(e)
	s.entries[e.digest] = e
	s.used += e.size
}

func (s *Store) path(digest string) string { return filepath.Join(s.dir, digest[:2], digest) }

func (s *Store) partPath(digest string) string { return s.path(digest) + partSuffix }

// Stat says whether an artifact is there, and if not, how many bytes of an unfinished upload are.
func (s *Store) Stat(digest string) (complete bool, receivedBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[digest]
	if e == nil {
		return false, 0
	}
	if e.complete {
		return true, e.size
	}
	return false, fileSize(s.partPath(digest))
}

// Pin keeps artifacts from being evicted until as many calls of Unpin; they need not be there yet.
func (s *Store) Pin(digests ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		s.pins[d]++
	}
}

// Unpin takes back a Pin.
func (s *Store) Unpin(digests ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		if s.pins[d]--; s.pins[d] <= 0 {
			delete(s.pins, d)
		}
	}
}

// Use returns the path of an artifact, which stays until release is called. The file must not be written.
func (s *Store) Use(digest string) (path string, release func(), err error) {
	s.mu.Lock()
	e := s.entries[digest]
	if e == nil || !e.complete {
		s.mu.Unlock()
		return "", nil, fmt.Errorf("%w: %s", ErrNotFound, digest)
	}
	s.lru.MoveToBack(e.place)
	s.pins[digest]++
	s.mu.Unlock()
	// The time of last use outlives the process as the file's; losing it costs at most an early eviction.
	_ = os.Chtimes(s.path(digest), time.Time{}, time.Now())
	return s.path(digest), sync.OnceFunc(func() { s.Unpin(digest) }), nil
}

// UsedBytes returns how much is stored, parts included.
func (s *Store) UsedBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// makeRoom evicts until need more bytes fit; what can never fit evicts nothing. The caller holds the lock.
func (s *Store) makeRoom(need int64) error {
	if need > s.cap {
		return s.noRoom(need)
	}
	for place := s.lru.Front(); need > s.cap-s.used; {
		if place == nil {
			return s.noRoom(need)
		}
		e := place.Value.(*entry)
		place = place.Next()
		if e.busy == nil && s.pins[e.digest] == 0 {
			s.drop(e)
		}
	}
	return nil
}

func (s *Store) noRoom(need int64) error {
	return fmt.Errorf("%w: %s may hold %d bytes, %d are in use and %d more are needed: raise the cap",
		ErrFull, s.dir, s.cap, s.used, need)
}

// drop removes an entry and its file. The caller holds the lock.
func (s *Store) drop(e *entry) {
	path := s.path(e.digest)
	if !e.complete {
		path = s.partPath(e.digest)
	}
	if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("artifact not removed", "artifact", e.digest, "error", err)
	}
	s.lru.Remove(e.place)
	delete(s.entries, e.digest)
	s.used -= e.size
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
