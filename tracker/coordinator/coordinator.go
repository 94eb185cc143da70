package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Config configures a coordinator. All fields except Failing are required.
type Config struct {
	// State configures the machine. New sets Artifacts, Requested and Life.
	State state.Config
	// Store must be open. The caller closes it after all users of the coordinator have stopped.
	Store records.Store
	// Artifacts configures the artifact store. New sets Damaged, Logger and Now.
	Artifacts artifact.Options
	// Calls bounds the calls that wait for the disk, Watches the event streams.
	Calls, Watches int
	// Observe receives the facts of each change. It is called with the coordinator's lock held and must not block.
	Observe func(state.Fact)
	// Failing is called once when the store cannot be written; the coordinator stops then. If nil, the error is
	// logged.
	Failing func(error)
}

// Coordinator runs a state machine. Its methods are safe for concurrent use.
type Coordinator struct {
	cfg       Config
	log       *slog.Logger
	store     records.Store
	artifacts *artifact.Store
	remote    records.Remote // nil without a database server
	watches   *Watches
	calls     atomic.Int64 // calls waiting for the disk

	// sweep has capacity one. It holds an element when dropped jobs may have left rows.
	sweep chan struct{}
	// closing is closed to end long polls and streams.
	closing   chan struct{}
	closeOnce sync.Once
	// failed is closed once failure is set: the store could not be written.
	failed   chan struct{}
	failOnce sync.Once
	failure  error

	mu      sync.Mutex
	machine *state.Machine
	waits   map[*state.Waiter]*wait
}

// New returns a coordinator for an empty farm.
func New(cfg Config) (*Coordinator, error) {
	e := &Coordinator{
		cfg: cfg, log: cfg.State.Logger, store: cfg.Store, watches: newWatches(cfg.Watches),
		sweep: make(chan struct{}, 1), closing: make(chan struct{}), failed: make(chan struct{}),
		waits: map[*state.Waiter]*wait{},
	}
	options := cfg.Artifacts
	options.Logger, options.Now, options.Damaged = e.log, cfg.State.Now, e.damaged
	if e.cfg.Failing == nil {
		e.cfg.Failing = func(err error) { e.log.Error("the records cannot be written, stopping", "error", err) }
	}
	e.followRemote()
	var err error
	if e.artifacts, err = artifact.Open(options); err != nil {
		return nil, err
	}
	machine := cfg.State
	machine.Artifacts, machine.Requested, machine.Generation = e.artifacts, e.store.JobByRequest, e.store.Generation()
	e.machine = state.New(machine)
	return e, nil
}

// Recover loads the state from the store. It must be called before Run.
func (e *Coordinator) Recover() error {
	file, isFile := e.store.(records.File)
	if isFile {
		file.OnDamage(func(d *records.Damage) {
			e.log.Error("row of the records file damaged", "bucket", d.Bucket, "key", string(d.Key), "error", d.Err)
		})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	mend, err := e.machine.Recover(e.store)
	if err != nil {
		return err
	}
	if err := e.applyNow(mend); err != nil {
		return err
	}
	if isFile && !file.Restored().IsZero() {
		e.log.Warn("the records file is a restored backup: later changes are lost, and all agents join again", "of", file.Restored().UTC())
	}
	return e.retainAll()
}

// applyNow makes a change and waits until it is stored. The caller must hold the lock.
func (e *Coordinator) applyNow(step func(c *state.Change) error) error {
	pending, err := e.apply(step)
	if err != nil {
		return err
	}
	return pending.Wait(context.Background())
}

// retainAll enforces the retention rules on a store that another tracker, or this one with other rules, has written.
// The caller must hold the lock.
func (e *Coordinator) retainAll() (err error) {
	ended, owners := e.machine.Ended()
	for _, owner := range append(owners, "") {
		for before := -1; before != ended; {
			before = ended
			err = errors.Join(err, e.applyNow(unfailing(func(c *state.Change) { c.Retain(owner) })))
			ended, _ = e.machine.Ended()
		}
	}
	return err
}

// Read calls look with the lock held. look must not retain the machine.
func (e *Coordinator) Read(look func(m *state.Machine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	look(e.machine)
}

// LookUp reads what a submission needs from the store, without holding the lock.
func (e *Coordinator) LookUp(s *state.Submission) error {
	var lapsed uint64
	e.Read(func(m *state.Machine) { lapsed = m.EndedCount() })
	return s.LookUp(e.store.JobByRequest, lapsed)
}

// Members returns the session counts by identity. They need no lock.
func (e *Coordinator) Members() *state.Members { return e.machine.Members() }

// Store returns the store.
func (e *Coordinator) Store() records.Store { return e.store }

// Artifacts returns the artifact store.
func (e *Coordinator) Artifacts() *artifact.Store { return e.artifacts }

// Watches returns the subscriptions to events.
func (e *Coordinator) Watches() *Watches { return e.watches }

// Closing returns a channel that is closed when long polls and streams must end.
func (e *Coordinator) Closing() <-chan struct{} { return e.closing }

// Close ends long polls and streams, so that a server can stop gracefully.
func (e *Coordinator) Close() { e.closeOnce.Do(func() { close(e.closing) }) }

// fail records that the store cannot be written. From then on memory is ahead of the store for good.
func (e *Coordinator) fail(err error) {
	e.failOnce.Do(func() {
		e.cfg.Failing(err)
		e.failure = err
		close(e.failed)
	})
}

// damaged handles a damaged artifact that was set aside.
func (e *Coordinator) damaged(digest string) {
	err := e.Update(context.Background(), unfailing(func(c *state.Change) { c.Damaged(digest) }))
	if err != nil {
		e.log.Warn("users of a damaged artifact not found: they fail when an agent requests it", "artifact", digest, "error", err)
	}
}

// followRemote logs when the store's server goes away and returns.
func (e *Coordinator) followRemote() {
	remote, ok := e.store.(records.Remote)
	if !ok {
		return
	}
	e.remote = remote
	remote.OnFailed(e.fail) // sooner than the next commit
	remote.OnUnavailable(func(why error) {
		if why != nil {
			e.log.Error("database unavailable; rejecting writes", "error", why)
		} else {
			e.log.Info("the database is back")
		}
	})
}

// away reports whether the store's server is unavailable. No change may be made then, since memory would only run
// further ahead. Earlier commits wait.
func (e *Coordinator) away() bool { return e.remote != nil && e.remote.Unavailable() != nil }

// refuseAway refuses a call while the store's server is unavailable. Only the log names the server and the cause.
func (e *Coordinator) refuseAway() error {
	if e.away() {
		return state.Refuse(state.StoreAway, "%v: try again later", records.ErrAway)
	}
	return nil
}
