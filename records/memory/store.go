package memory

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// defaultMaxSizeBytes is small compared to the memory of a tracker's machine.
const defaultMaxSizeBytes = 1 << 30

// rowBytes approximates the overhead of a row besides its key and value.
const rowBytes = 64

// Options configures a store.
type Options struct {
	// MaxSizeBytes bounds the size of all rows. Once it is exceeded, every write fails. 0 means 1 GiB.
	MaxSizeBytes int64
	// Generation names the store's only generation (see records.IsGeneration); empty draws a random name.
	Generation string
}

// Store implements records.Store.
type Store struct {
	generation string
	max        int64

	// writing serializes writers, including their notifications, which keeps these in order.
	writing sync.Mutex
	closed  bool
	failed  error

	mu      sync.RWMutex // guards the fields below; held for writing only together with writing
	observe func(records.Transaction)
	size    int64

	jobs    sorted[string, *job]
	open    sorted[string, *job] // open jobs
	lastJob string               // id of the newest job ever
	// requests maps records.RequestKey to job ids.
	requests  map[string]string
	rows      map[records.RowKind]*sorted[string, []byte] // of the kinds of records.PutRow
	workloads map[string][]byte
	groups    sorted[string, *group]
}

// New returns an empty store.
func New(opts Options) *Store {
	return &Store{
		generation: cmp.Or(opts.Generation, records.NewGeneration()), max: cmp.Or(opts.MaxSizeBytes, defaultMaxSizeBytes),
		requests: map[string]string{}, workloads: map[string][]byte{},
		rows: map[records.RowKind]*sorted[string, []byte]{
			records.RowEnded: {}, records.RowBatch: {}, records.RowClosed: {}, records.RowAgent: {}, records.RowDevice: {},
		},
	}
}

// Generation implements records.Store.
func (s *Store) Generation() string { return s.generation }

// SizeBytes implements records.Store. It approximates the memory used by rows.
func (s *Store) SizeBytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// Observe implements records.Store.
func (s *Store) Observe(f func(records.Transaction)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe = f
}

// Close implements records.Store.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.closed = true
	return nil
}

// Commit implements records.Store. The write is stored when Commit returns.
func (s *Store) Commit(w *records.Write) *records.Pending {
	p := records.NewPending()
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.write(w.Ops())
	if err == nil {
		w.Committed()
	}
	p.Settle(err)
	return p
}

// write makes the changes of a write. The caller must hold writing.
func (s *Store) write(ops []records.Op) error {
	if s.closed {
		return records.ErrClosed
	}
	if s.failed != nil {
		return s.failed
	}
	begin := time.Now()
	s.mu.Lock()
	if s.size > s.max {
		s.failed = fmt.Errorf("the records take %d bytes of memory, at most %d will do: keep them in a file", s.size, s.max)
	}
	for _, op := range ops {
		if s.failed == nil {
			s.failed = s.apply(op)
		}
	}
	observe, err := s.observe, s.failed
	s.mu.Unlock()
	if err == nil && observe != nil && len(ops) > 0 {
		observe(records.Transaction{Took: time.Since(begin), Commits: 1})
	}
	return err
}

// put sets a row and updates the size.
func (s *Store) put(rows *sorted[string, []byte], key string, row []byte) {
	before, replaced := rows.put(key, row)
	s.size += int64(len(row) - len(before))
	if !replaced {
		s.size += int64(len(key)) + rowBytes
	}
}

// remove removes a row if it exists.
func (s *Store) remove(rows *sorted[string, []byte], key string) {
	if row, there := rows.remove(key); there {
		s.size -= int64(len(key)+len(row)) + rowBytes
	}
}

// Agents implements records.Store.
func (s *Store) Agents(visit func(*tilthv1.Agent)) error {
	return visitAll(s, records.RowAgent, func(_ string, a *tilthv1.Agent) { visit(a) })
}

// Devices implements records.Store.
func (s *Store) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return visitAll(s, records.RowDevice, visit)
}
