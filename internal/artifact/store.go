package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/disk"
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
	// ErrBusy is returned when the other uploads of the same identity leave no room for one more; they end.
	ErrBusy = errors.New("too many uploads at once")
	// ErrDamaged is returned when a stored artifact no longer has its bytes. It is set aside: later calls do not find
	// it.
	ErrDamaged = errors.New("artifact is damaged")
	// ErrAway is returned while the server of an object store does not do what it is asked.
	ErrAway = errors.New("the object store of artifacts is away")
)

// Defaults of Options.
const (
	DefaultCapBytes   = 8 << 30
	DefaultUploads    = 1024
	DefaultKeepParts  = time.Hour
	DefaultScrubEvery = 24 * time.Hour
)

// Options configure a store.
type Options struct {
	// Dir holds the files; it is created. With Blobs it holds only what is unfinished.
	Dir string
	// Blobs keep the artifacts, which other stores may use, too; nil = Dir does, for this store alone.
	Blobs Blobs
	// Opening ends Open early, which lists what Blobs keep; nil = nothing does.
	Opening context.Context
	// Part is what this store drops and checks of what Blobs keep.
	Part Part
	// CapBytes bounds the room that files take (see roomOf); 0 = DefaultCapBytes.
	CapBytes int64
	// Uploads bounds the unfinished uploads of one identity, under way or broken off; 0 = DefaultUploads.
	Uploads int
	// UploadBytes bounds the room that they take; 0 = half of CapBytes.
	UploadBytes int64
	// Keep is how long an artifact stays after its last use; 0 = until its room is needed.
	Keep time.Duration
	// KeepParts is how long an upload that broke off may be resumed; 0 = DefaultKeepParts.
	KeepParts time.Duration
	// ScrubBytes is how many bytes a second are read to check what is stored; 0 = only what is used is checked.
	ScrubBytes int64
	// ScrubEvery is how often each artifact is checked; 0 = DefaultScrubEvery.
	ScrubEvery time.Duration
	// Damaged, when set, is called with the digest of each artifact that is found damaged, after it was set aside.
	Damaged func(digest string)
	Logger  *slog.Logger
	// FS holds the files; nil = OS{}.
	FS FS
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Share are the options of one of n stores that have the room, and the work of checking, together.
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
	if o.Opening == nil {
		o.Opening = context.Background()
	}
	if o.Damaged == nil {
		o.Damaged = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = OS{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Store is files named by their sha256, within a bounded room. A file appears whole or not at all; parts of unfinished
// uploads are kept aside to be resumed. Its methods may be called from many goroutines.
type Store struct {
	Options
	blobs  Blobs
	shared bool // with other stores; see shared.go

	mu      sync.Mutex
	files   map[string]*file     // artifacts, by digest
	uploads map[string][]*upload // unfinished, by digest
	owners  map[string]*account  // by owner, those that have something to lose or to finish
	used    int64                // room of files and uploads
	pins    map[string]int
	folders map[string]bool // whose names are on the disk
	number  uint64          // of the last upload
	stats   Stats
	opened  time.Time
	// What is being named or checked, by digest; closed at the end.
	sealing, checking map[string]chan struct{}
	doomed            map[string]Blob // shared, by name: to be removed
	away              error           // why what is shared cannot be reached
}

// Open opens the store in a folder.
func Open(opts Options) (*Store, error) {
	opts.setDefaults()
	s := &Store{
		Options: opts, files: map[string]*file{}, uploads: map[string][]*upload{}, owners: map[string]*account{},
		pins: map[string]int{}, folders: map[string]bool{}, stats: newStats(), opened: opts.Now(),
		sealing: map[string]chan struct{}{}, checking: map[string]chan struct{}{}, doomed: map[string]Blob{},
		blobs: opts.Blobs, shared: opts.Blobs != nil,
	}
	if !s.shared {
		s.blobs = folder{s.Dir, s.FS}
	}
	if err := disk.MakeFolder(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("open artifact store %s: %w", s.Dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.makeRoom("", 0) // it may have been opened with a larger cap
	return s, nil
}

func (s *Store) path(digest string) string { return filepath.Join(s.Dir, digest[:2], digest) }

// Stat says whether an artifact is there, and how many bytes it has. It does not look at them; see Confirm. What
// others may drop counts as there while that is too early for them.
func (s *Store) Stat(digest string) (complete bool, sizeBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[digest]; f != nil && s.relied(f) {
		return true, f.sizeBytes
	}
	return false, 0
}

// Pin keeps artifacts from being dropped until as many calls of Unpin; they need not be there yet.
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

// Unpin takes back a Pin.
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

// Use returns the path of an artifact in Dir, which stays until release is called. The file must not be written.
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

// UsedBytes returns the room that is taken, parts included.
func (s *Store) UsedBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
