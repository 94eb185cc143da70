package state

import (
	"container/list"
	"log/slog"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Config configures a machine. All fields except Shares are required.
type Config struct {
	Logger *slog.Logger
	// Now is the wall clock, for timestamps. Clock is monotonic, for deadlines; only differences of its values matter.
	Now, Clock func() time.Time
	// Artifacts holds the files that work needs.
	Artifacts Artifacts
	// Requested returns the job that a request created, ended or not, or records.ErrNotFound.
	Requested func(owner, requestID string) (jobID string, err error)
	// Shards is the number of shards of the store, including this one; 0 means 1.
	Shards int
	// Generation is the store's generation. It distinguishes job ids and leases from those of other generations.
	Generation string
	// HeartbeatInterval is how often agents report while they are few. LeaseTimeout is the lifetime of a session or
	// lease without a heartbeat. Grace is the same after a restart, OutageWait when most agents fall silent at once.
	HeartbeatInterval, LeaseTimeout, Grace, OutageWait time.Duration
	// MaxAttempts bounds the attempts at a piece of work; FirstRetry and MaxRetry bound the delay between them.
	MaxAttempts          uint32
	FirstRetry, MaxRetry time.Duration
	// Cooldown bounds the cooldown of an agent whose leases all fail.
	Cooldown policy.Cooldown
	// SearchTurn is how long a tuner may hold a job while others wait.
	SearchTurn time.Duration
	// Shares are the owners' quotas and weights. Keep decides which ended jobs are retained, Limits bound the memory,
	// and Drift judges devices by their calibrations.
	Shares policy.Shares
	Keep   policy.Retention
	Limits Limits
	Drift  policy.Drift
}

// Artifacts are the files that work needs, by SHA-256 digest.
type Artifacts interface {
	// Stat reports whether an artifact is complete, and its size.
	Stat(digest string) (complete bool, sizeBytes int64)
	// Pin protects artifacts from eviction until a matching number of Unpin calls.
	Pin(digests ...string)
	Unpin(digests ...string)
}

// Machine is the state of a farm and its transitions. Its methods must not be called concurrently.
type Machine struct {
	cfg        Config
	log        *slog.Logger
	generation string
	artifacts  Artifacts
	effects    []*Effects // not carried out yet

	nextJob  uint64
	jobs     map[string]*job   // open jobs by id
	requests map[request]*job  // open jobs submitted since the start
	lapsed   uint64            // number of jobs that ended or were dropped since the start
	batches  map[string]*batch // open batches by id
	agents   map[string]*agent // all known agents by name
	sessions map[string]*agent // valid sessions
	members  Members           // valid sessions by identity
	gone     list.List         // of *agent, with void sessions, oldest first
	queues   map[class]*queue  // queued work and waiting agents
	leases   map[string]*lease // by subject
	// deadlines are those of sessions and leases, and of data with a limited retention.
	deadlines deadlines
	retries   retries           // scheduled retries
	owners    map[string]*usage // owners of open jobs by name
	load      load
	archive   *policy.Archive // ended jobs

	// lastTick is when deadlines were last checked, patientUntil when they are enforced again.
	lastTick, patientUntil time.Time
	outage                 *outage               // nil without an outage
	devices                map[string]*device    // all known devices by name
	timed                  map[*device]time.Time // when devices change state by themselves
	supplies               *supplies             // as of the last tick
	// nextSpent is when the first time budget runs out, by Clock, if nothing changes; zero if none will.
	nextSpent time.Time
}

// New returns a machine for an empty farm.
func New(cfg Config) *Machine {
	return &Machine{
		cfg: cfg, log: cfg.Logger, generation: cfg.Generation, artifacts: cfg.Artifacts,
		jobs: map[string]*job{}, requests: map[request]*job{}, batches: map[string]*batch{},
		agents: map[string]*agent{}, sessions: map[string]*agent{},
		queues: map[class]*queue{}, leases: map[string]*lease{}, owners: map[string]*usage{}, supplies: newSupplies(),
		devices: map[string]*device{}, timed: map[*device]time.Time{}, archive: policy.NewArchive(), deadlines: newDeadlines(),
		retries: policy.NewHeap(func(a, b *retry) bool { return a.due.Before(b.due) }, func(r *retry) *int { return &r.place }),
	}
}

// UntilBudgetSpent returns the time until the first budget runs out if nothing changes; ok is false if none will.
func (m *Machine) UntilBudgetSpent() (wait time.Duration, ok bool) {
	return m.nextSpent.Sub(m.cfg.Clock()), !m.nextSpent.IsZero()
}

// Kinds returns the kinds of agents with a session.
func (m *Machine) Kinds() map[tilthv1.AgentKind]bool {
	present := map[tilthv1.AgentKind]bool{}
	for _, a := range m.sessions {
		present[a.spec.GetKind()] = true
		if len(present) == len(tilthv1.AgentKind_name)-1 { // all but UNSPECIFIED
			break
		}
	}
	return present
}
