package engine

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

// Config is what an engine needs. All fields are required.
type Config struct {
	// State is what the machine goes by; Artifacts, Requested and Life are set here.
	State state.Config
	// Store is open; the caller closes it after the engine's users have stopped.
	Store records.Store
	// Artifacts bound the artifacts in their Dir; Damaged, Logger and Now are set here.
	Artifacts artifact.Options
	// Calls bounds the calls that wait for the disk, and Watches the streams of events.
	Calls, Watches int
	// Observe hears of what happened. It is called under the engine's lock.
	Observe func(state.Fact)
	// Failing hears once that the store cannot be written, with which the engine ends; nil = it is logged.
	Failing func(error)
}

// Engine runs a machine. Its methods may be called from many goroutines.
type Engine struct {
	cfg       Config
	log       *slog.Logger
	store     records.Store
	artifacts *artifact.Store
	remote    records.Remote // nil = the store has no server
	watches   *Watches
	calls     atomic.Int64 // that wait for the disk

	// sweep holds an element when rows of dropped jobs may be left.
	sweep chan struct{}
	// closing ends long polls and streams.
	closing   chan struct{}
	closeOnce sync.Once
	// failed is closed after failure was set: the store could not be written.
	failed   chan struct{}
	failOnce sync.Once
	failure  error

	mu      sync.Mutex
	machine *state.Machine
	waits   map[*state.Waiter]*wait
}

// New returns an engine of an empty farm.
func New(cfg Config) (*Engine, error) {
	e := &Engine{
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
	machine.Artifacts, machine.Requested, machine.Life = e.artifacts, e.store.JobByRequest, e.store.Life()
	e.machine = state.New(machine)
	return e, nil
}

// Recover goes on where the store ends.
func (e *Engine) Recover() error {
	file, isFile := e.store.(records.File)
	if isFile {
		file.OnDamage(e.tellDamage)
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
		e.log.Warn("the records file is a restored backup: what came after it is lost, all agents join anew", "of", file.Restored().UTC())
	}
	return e.retainAll()
}

// applyNow makes a change and waits for it. The caller holds the lock.
func (e *Engine) applyNow(step func(c *state.Change) error) error {
	pending, err := e.apply(step)
	if err != nil {
		return err
	}
	return pending.Wait(context.Background())
}

// retainAll drops what is not kept of a file that another tracker left, or that was kept by other rules. The caller
// holds the lock.
func (e *Engine) retainAll() (err error) {
	ended, owners := e.machine.Ended()
	for _, owner := range append(owners, "") {
		for before := -1; before != ended; {
			before = ended
			err = errors.Join(err, e.applyNow(func(c *state.Change) error {
				c.Retain(owner)
				return nil
			}))
			ended, _ = e.machine.Ended()
		}
	}
	return err
}

// Read has a look at the machine, which must not outlast it.
func (e *Engine) Read(look func(m *state.Machine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	look(e.machine)
}

// LookUp has the store asked for what a submission needs of it, while nobody waits for the lock.
func (e *Engine) LookUp(s *state.Submission) error {
	var lapsed uint64
	e.Read(func(m *state.Machine) { lapsed = m.Lapsed() })
	return s.LookUp(e.store.JobByRequest, lapsed)
}

// Members counts the sessions of each identity; its methods wait for nobody.
func (e *Engine) Members() *state.Members { return e.machine.Members() }

// Store is the store.
func (e *Engine) Store() records.Store { return e.store }

// Artifacts are the artifacts.
func (e *Engine) Artifacts() *artifact.Store { return e.artifacts }

// Watches are those who are told of events.
func (e *Engine) Watches() *Watches { return e.watches }

// Closing is closed when long polls and streams are to end.
func (e *Engine) Closing() <-chan struct{} { return e.closing }

// Close ends long polls and streams, so that a server can stop gracefully.
func (e *Engine) Close() { e.closeOnce.Do(func() { close(e.closing) }) }

// fail remembers that the store cannot be written: the memory is ahead of it for good.
func (e *Engine) fail(err error) {
	e.failOnce.Do(func() {
		e.cfg.Failing(err)
		e.failure = err
		close(e.failed)
	})
}

// damaged has what needs an artifact that is damaged, and set aside, done again.
func (e *Engine) damaged(digest string) {
	err := e.Update(context.Background(), func(c *state.Change) error {
		c.Damaged(digest)
		return nil
	})
	if err != nil {
		e.log.Warn("what needs a damaged artifact is found when an agent asks for it", "artifact", digest, "error", err)
	}
}

// tellDamage logs a damaged row of the records file, once.
func (e *Engine) tellDamage(d *records.Damage) {
	e.log.Error("row of the records file damaged", "bucket", d.Bucket, "key", string(d.Key), "error", d.Err)
}
