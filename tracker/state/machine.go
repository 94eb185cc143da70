package state

import (
	"container/list"
	"log/slog"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/drift"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
	"github.com/tilth-dev/tilth/tracker/policy/rest"
	"github.com/tilth-dev/tilth/tracker/policy/retention"
)

// Config is what a machine goes by. All fields are required but for Shares.
type Config struct {
	Logger *slog.Logger
	// Now is the wall's clock, for stamps; Clock is what deadlines are judged by, of which only differences mean
	// anything.
	Now, Clock func() time.Time
	// Artifacts are the files that work needs.
	Artifacts Artifacts
	// Requested returns the job that a request made, also one that has ended; records.ErrNotFound when none did.
	Requested func(owner, requestID string) (jobID string, err error)
	// Shards is how many shards the store has, of which this is one; 0 = 1.
	Shards int
	// Life is the store's, which distinguishes the names of this life's jobs and leases from those of another.
	Life string
	// HeartbeatInterval is how often agents are asked to report while they are few. LeaseTimeout is how long a lease
	// or a session lives without a heartbeat, Grace how long those from before a restart do, OutageWait when most
	// agents fall silent at once.
	HeartbeatInterval, LeaseTimeout, Grace, OutageWait time.Duration
	// MaxAttempts bounds how often work is tried; FirstRetry and MaxRetry the wait before it is tried again.
	MaxAttempts          uint32
	FirstRetry, MaxRetry time.Duration
	// Rest bounds how long an agent whose leases all fail is given nothing.
	Rest rest.Policy
	// SearchTurn is how long a tuner may hold a job while others wait.
	SearchTurn time.Duration
	// Shares are what owners may have, Keep says which ended jobs are kept, Limits bound the memory, and Drift judges
	// devices by their calibrations.
	Shares quota.Shares
	Keep   retention.Keep
	Limits Limits
	Drift  drift.Policy
}

// Artifacts are the files that work needs, by their sha256.
type Artifacts interface {
	// Stat says whether an artifact is whole, and how large it is.
	Stat(digest string) (complete bool, sizeBytes int64)
	// Pin keeps artifacts from being evicted until they are unpinned as often.
	Pin(digests ...string)
	Unpin(digests ...string)
}

// Machine is the state of a farm, and what may become of it. Its methods must not be called at the same time.
type Machine struct {
	cfg       Config
	log       *slog.Logger
	life      string
	artifacts Artifacts
	effects   []*Effects // that nobody has carried out yet

	nextJob  uint64
	jobs     map[string]*job   // by id, those that have not ended
	requests map[request]*job  // those submitted since the start that have not ended
	lapsed   uint64            // how many jobs have ended or were dropped since the start
	batches  map[string]*batch // by id, those under way
	agents   map[string]*agent // by name, all that ever joined
	sessions map[string]*agent // by session, those not void
	members  Members           // the same by identity
	gone     list.List         // of *agent, those whose session is void, in the order in which it became so
	queues   map[class]*queue  // work that waits, and agents that wait for it
	leases   map[string]*lease // by subject
	// deadlines of all sessions and leases, and of what is kept for a while only.
	deadlines deadlines
	retries   retries           // work that waits to be tried again
	owners    map[string]*usage // by name, those of jobs that have not ended
	load      load
	archive   *retention.Archive // jobs that have ended

	// When deadlines were looked at last, and before when none counts.
	lastBeat, patientUntil time.Time
	outage                 *outage               // nil while there is none
	devices                map[string]*device    // by name, all whose runner ever joined
	timed                  map[*device]time.Time // when the state of a device changes by itself
	supplies               *supplies             // as they were at the last beat
	// When the first budget is spent, by Clock, if all goes on as at the last beat; zero when none will be.
	nextSpent time.Time
}

// New returns a machine of an empty farm.
func New(cfg Config) *Machine {
	return &Machine{
		cfg: cfg, log: cfg.Logger, life: cfg.Life, artifacts: cfg.Artifacts,
		jobs: map[string]*job{}, requests: map[request]*job{}, batches: map[string]*batch{},
		agents: map[string]*agent{}, sessions: map[string]*agent{},
		queues: map[class]*queue{}, leases: map[string]*lease{}, owners: map[string]*usage{}, supplies: newSupplies(),
		devices: map[string]*device{}, timed: map[*device]time.Time{}, archive: retention.NewArchive(),
	}
}

// UntilSpent is the time until the first budget is spent, if all goes on as at the last beat; ok is false when none
// will be.
func (m *Machine) UntilSpent() (wait time.Duration, ok bool) {
	return m.nextSpent.Sub(m.cfg.Clock()), !m.nextSpent.IsZero()
}

// Kinds are the kinds of which an agent is joined.
func (m *Machine) Kinds() map[tilthv1.AgentKind]bool {
	present := map[tilthv1.AgentKind]bool{}
	for _, a := range m.sessions {
		present[a.spec.GetKind()] = true
		if len(present) == len(tilthv1.AgentKind_name)-1 { // all but the unspecified one
			break
		}
	}
	return present
}
