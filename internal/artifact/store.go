package artifact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/wire"
)

var (
	// ErrNotFound is returned for an artifact that is not, or no longer, in the store.
	ErrNotFound = errors.New("artifact not found")
	// ErrOffset is returned if an upload does not start where the received part ends.
	ErrOffset = errors.New("upload does not begin where the last one ended")
	// ErrDigest is returned if the received bytes do not match the digest; they are discarded.
	ErrDigest = errors.New("bytes do not have the digest")
	// ErrSize is returned if more or fewer bytes arrive than announced.
	ErrSize = errors.New("bytes do not have the size announced")
	// ErrFull is returned if there is no space: the disk is full, or everything stored is in use.
	ErrFull = errors.New("no space for artifacts")
	// ErrBusy is returned while other uploads of the same identity leave no space. It is temporary.
	ErrBusy = errors.New("too many uploads at once")
	// ErrDamaged is returned if a stored artifact is corrupt. It is set aside: later calls do not find it.
	ErrDamaged = errors.New("artifact is damaged")
	// ErrAway is returned while the object store is unavailable.
	ErrAway = errors.New("the artifact object store is unavailable")
)

// Default options.
const (
	DefaultCapBytes   = 8 << 30
	DefaultUploads    = 1024
	DefaultKeepParts  = time.Hour
	DefaultScrubEvery = 24 * time.Hour
)

// Options configure a Store.
type Options struct {
	// Dir holds the files; it is created. With Blobs it holds only unfinished uploads.
	Dir string
	// Blobs store the artifacts, possibly shared with other stores; nil = Dir, for this store alone.
	Blobs Blobs
	// Opening cancels the initial listing of Blobs in Open; may be nil.
	Opening context.Context
	// Part is the part of Blobs that this store drops and verifies.
	Part Part
	// CapBytes bounds the accounted space of files (see roomOf); 0 = DefaultCapBytes.
	CapBytes int64
	// Uploads bounds the unfinished uploads of one identity, in progress or interrupted; 0 = DefaultUploads.
	Uploads int
	// UploadBytes bounds the space of these uploads; 0 = half of CapBytes.
	UploadBytes int64
	// Keep is how long an artifact is kept after its last use; 0 = until its space is needed.
	Keep time.Duration
	// KeepParts is how long an interrupted upload may be resumed; 0 = DefaultKeepParts.
	KeepParts time.Duration
	// ScrubBytes is the rate in bytes per second of background verification; 0 = artifacts are verified only when
	// used.
	ScrubBytes int64
	// ScrubEvery is how often each artifact is verified; 0 = DefaultScrubEvery.
	ScrubEvery time.Duration
	// Damaged, if set, is called with the digest of each damaged artifact after it was set aside.
	Damaged func(digest string)
	Logger  *slog.Logger
	// FS performs file operations; nil = OS{}.
	FS FS
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Share returns the options of store index of n stores that divide the space and the verification.
func (o Options) Share(index, n int) Options {
	o.Part = Part{index, n}
	o.CapBytes = cmp.Or(o.CapBytes, DefaultCapBytes) / int64(n)
	o.UploadBytes /= int64(n)
	o.ScrubBytes /= int64(n)
	return o
}

func (o *Options) setDefaults() {
	o.CapBytes = cmp.Or(o.CapBytes, DefaultCapBytes)
	o.Uploads = cmp.Or(o.Uploads, DefaultUploads)
	o.UploadBytes = cmp.Or(o.UploadBytes, o.CapBytes/2)
	o.KeepParts = cmp.Or(o.KeepParts, DefaultKeepParts)
	o.ScrubEvery = cmp.Or(o.ScrubEvery, DefaultScrubEvery)
	o.Opening = cmp.Or(o.Opening, context.Background())
	if o.Damaged == nil {
		o.Damaged = func(string) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.FS = cmp.Or[FS](o.FS, OS{})
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Store stores files by SHA-256 within bounded space. A file appears whole or not at all; parts of unfinished uploads
// are kept separately to be resumed. Its methods may be called concurrently.
type Store struct {
	Options
	blobs  Blobs
	shared bool // Blobs are shared with other stores; see object_store.go

	mu      sync.Mutex
	files   map[string]*file     // artifacts by digest
	uploads map[string][]*upload // unfinished uploads by digest
	owners  map[string]*account  // nonempty accounts by owner
	used    int64                // space of files and uploads
	pins    map[string]int
	folders map[string]bool // folders whose entries are synced
	number  uint64          // of the last upload
	stats   Stats
	opened  time.Time
	// sealing and checking hold the operations in progress by digest. Their channels are closed at the end.
	sealing, checking map[string]chan struct{}
	removals          map[string]Blob // artifacts to remove from the object store, by name
	away              error           // why the object store is unavailable; nil = it is available
}

// Open opens the store in opts.Dir.
func Open(opts Options) (*Store, error) {
	opts.setDefaults()
	s := &Store{
		Options: opts, files: map[string]*file{}, uploads: map[string][]*upload{}, owners: map[string]*account{},
		pins: map[string]int{}, folders: map[string]bool{}, stats: newStats(), opened: opts.Now(),
		sealing: map[string]chan struct{}{}, checking: map[string]chan struct{}{}, removals: map[string]Blob{},
		blobs: opts.Blobs, shared: opts.Blobs != nil,
	}
	if !s.shared {
		s.blobs = folder{s.Dir, s.FS}
	}
	if err := filesystem.MakeFolder(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("open artifact store %s: %w", s.Dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.makeRoom("", 0) // the cap may have been reduced
	return s, nil
}

// Stat reports whether an artifact is present, and its size. It does not verify the content; see Confirm. An artifact
// that other stores may drop counts as present until the grace period ends.
func (s *Store) Stat(digest string) (complete bool, sizeBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[digest]; f != nil && s.isReliable(f) {
		return true, f.sizeBytes
	}
	return false, 0
}

// Pin keeps artifacts from being dropped until as many calls of Unpin; they need not be present yet.
func (s *Store) Pin(digests ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		s.pin(d)
	}
}

func (s *Store) pin(digest string) {
	s.pins[digest]++
	if f := s.files[digest]; f != nil {
		s.hold(f)
	}
}

// Unpin reverts one Pin.
func (s *Store) Unpin(digests ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		if s.pins[d]--; s.pins[d] > 0 {
			continue
		}
		delete(s.pins, d)
		if f := s.files[d]; f != nil {
			f.used = s.Now()
			s.release(f)
		}
	}
}

// Use returns the path of an artifact in Dir, which is valid until release is called. The file must not be modified.
func (s *Store) Use(digest string) (path string, release func(), err error) {
	f, release, err := s.use(context.Background(), digest)
	if err != nil {
		return "", nil, err
	}
	return f.path, release, nil
}

func (s *Store) use(ctx context.Context, digest string) (f *file, release func(), err error) {
	if _, err := s.lookUp(ctx, digest); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	if f = s.files[digest]; f == nil {
		s.mu.Unlock()
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, digest)
	}
	s.pin(digest)
	s.mu.Unlock()
	release = sync.OnceFunc(func() { s.Unpin(digest) })
	if err := s.touch(ctx, f); err != nil {
		release()
		return nil, nil, err
	}
	return f, release, nil
}

// Send reads an artifact from an offset and passes it to send in pieces. From offset 0 it verifies the content, and
// sends the last piece only if the digest matches. Otherwise it sets the artifact aside and returns ErrDamaged.
func (s *Store) Send(ctx context.Context, digest string, offset int64, send func([]byte) error) error {
	f, release, err := s.use(ctx, digest)
	if err != nil {
		return err
	}
	defer release()
	if offset < 0 || offset > f.sizeBytes {
		return fmt.Errorf("%w: artifact %s has %d bytes, none at %d", ErrSize, digest, f.sizeBytes, offset)
	}
	if err := s.send(ctx, f, offset, send); err != nil {
		return s.classifyReadError(f, err)
	}
	return nil
}

func (s *Store) send(ctx context.Context, f *file, offset int64, send func([]byte) error) error {
	src, err := s.read(ctx, f, offset)
	if err != nil {
		return err
	}
	defer src.Close()
	sum := sha256.New()
	buf := make([]byte, wire.PieceBytes)
	for at := offset; ; {
		n, err := io.ReadFull(src, buf[:min(wire.PieceBytes, f.sizeBytes-at)])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: it has %d bytes, not %d", ErrDamaged, at+int64(n), f.sizeBytes)
		} else if err != nil {
			return err
		}
		sum.Write(buf[:n])
		at += int64(n)
		if at == f.sizeBytes && offset == 0 {
			if err := matches(sum, f.digest); err != nil {
				return err
			}
		}
		if n > 0 {
			if err := send(buf[:n]); err != nil {
				return err
			}
		}
		if at == f.sizeBytes {
			return nil
		}
	}
}

// Reasons for drops.
const (
	droppedForRoom = "room"
	droppedUnused  = "unused"
	droppedPart    = "part"
	droppedDamaged = "damaged"
)

// Reasons for refusals of uploads.
const (
	refusedForRoom = "room"
	refusedUploads = "uploads"
)

// Stats describes the contents of a store, and its activity since it was opened.
type Stats struct {
	// Files counts the known artifacts, Uploads the unfinished uploads, in progress or interrupted.
	Files, Uploads int
	// UsedBytes is the space of both, UnfinishedBytes that of the uploads.
	UsedBytes, UnfinishedBytes int64
	// Dropped counts dropped files by reason: room, unused, part (an upload that was not resumed), damaged.
	Dropped map[string]int64
	// Refused counts refused uploads by reason: lack of space, or too many uploads of the identity.
	Refused map[string]int64
	// CheckedBytes counts the bytes verified.
	CheckedBytes int64
	// OldestCheck is the verification time of the least recently verified artifact: when the store was opened if
	// unknown, now if there are no artifacts.
	OldestCheck time.Time
	// Away reports whether the last request to the object store failed.
	Away bool
}

func newStats() Stats {
	return Stats{
		Dropped: map[string]int64{droppedForRoom: 0, droppedUnused: 0, droppedPart: 0, droppedDamaged: 0},
		Refused: map[string]int64{refusedForRoom: 0, refusedUploads: 0},
	}
}

// countRefusal counts an upload that was refused.
func (s *Store) countRefusal(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, ErrBusy):
		s.stats.Refused[refusedUploads]++
	case errors.Is(err, ErrFull):
		s.stats.Refused[refusedForRoom]++
	}
}

// Stats returns the current statistics.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Dropped, out.Refused = maps.Clone(s.stats.Dropped), maps.Clone(s.stats.Refused)
	out.Files, out.UsedBytes = len(s.files), s.used
	for _, a := range s.owners {
		out.Uploads += a.uploads
		out.UnfinishedBytes += a.unfinished
	}
	out.OldestCheck = s.Now()
	out.Away = s.away != nil
	for digest, f := range s.files {
		if at := later(f.checked, s.opened); at.Before(out.OldestCheck) && s.ownsPart(digest) {
			out.OldestCheck = at
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
