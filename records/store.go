package records

import (
	"context"
	"io"
	"time"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Store persists the state and records of a farm. Its methods are safe for concurrent use. Callers own what they
// return. Look-ups of a single item return ErrNotFound if it does not exist.
type Store interface {
	Jobs
	Batches
	Measurements

	// Commit submits a write. Writes are stored in the order of the calls, each atomically. After a write has failed,
	// all later ones fail with the same error, since they may depend on it. After Close it fails with ErrClosed.
	Commit(w *Write) *Pending
	// Observe calls f for every later transaction that wrote. There is one observer at a time. f must not block.
	Observe(f func(Transaction))

	// Agents visits all stored agents by name, holding one in memory at a time.
	Agents(visit func(*tilthv1.Agent)) error
	// Devices visits all devices with stored decisions, by name.
	Devices(visit func(name string, row *storev1.DeviceRow)) error

	// Generation names the generation of the store, which changes with every opening for writing (see IsGeneration).
	// Names of stored objects should include it, so that names lost with a restored backup are never reused.
	Generation() string
	// SizeBytes returns the size of the store.
	SizeBytes() int64
	// Close waits for submitted commits.
	Close() error
}

// Jobs is the part of a store that holds jobs.
type Jobs interface {
	// Job returns a job with its specification and progress.
	Job(id string) (*tilthv1.Job, error)
	// JobRow returns a job's row: its state and lease without specification and progress.
	JobRow(id string) (*storev1.JobRow, error)
	// JobOwner returns the owner of a job. It does not decode the job's workloads.
	JobOwner(id string) (owner Owner, err error)
	// JobByRequest returns the id of the job that an owner's request created.
	JobByRequest(owner, requestID string) (id string, err error)
	// Jobs returns a page of jobs, newest first, without workloads, profiles and manifests. next is the value of
	// Before for the following page, "" after the last. It never names a job that q.Sees excludes. A page may be short
	// or empty although others follow.
	Jobs(q JobQuery) (jobs []*tilthv1.Job, next string, err error)
	// OpenJobs returns all open jobs, oldest first.
	OpenJobs() ([]*OpenJob, error)
	// LastJobID returns the id of the newest job ever created, or "".
	LastJobID() (id string, err error)
	// EndedJobs visits all retained ended jobs by id.
	EndedJobs(visit func(id string, row *storev1.EndedRow)) error
	// Events returns events of a job from a sequence number on, in order: at most limit, fewer if they are large, and
	// none only after the last. Trials whose records were pruned have no measurement.
	Events(jobID string, from uint64, limit int) ([]*tilthv1.JobEvent, error)
	// Sweep removes leftover rows of dropped jobs in bounded transactions. An interrupted sweep is completed by the
	// next.
	Sweep(ctx context.Context) error
}

// Batches is the part of a store that holds batches.
type Batches interface {
	// OpenBatches returns all open batches with their candidates, sorted by id.
	OpenBatches() ([]*OpenBatch, error)
	// DeadBatch returns a batch that became a dead letter, with its candidates.
	DeadBatch(id string) (*OpenBatch, error)
	// ClosedBatch returns the row of a closed batch. Open batches are not found.
	ClosedBatch(id string) (*storev1.BatchRow, error)
	// ClosedProposal returns the closed batch whose id is begin or starts with begin and a hyphen. Open batches are
	// not found.
	ClosedProposal(begin string) (id string, row *storev1.BatchRow, err error)
	// ClosedJobs returns the sorted ids of jobs with closed batches, and the number of batches that each has proposed.
	// It reads one row per job.
	ClosedJobs() (ids []string, proposals []uint64, err error)
}

// Measurements is the part of a store that holds records. Targets are interpreted by NamesOf: empty means all shared
// groups; private groups have names of their own (see Private).
type Measurements interface {
	// BestAllowed returns the best record of a workload on a target that a level of numerics allows, with the
	// workload's canonical form. An empty level allows all. The cost does not depend on the number of records. It
	// returns ErrInvalid for an unknown level.
	BestAllowed(target, workloadDigest, numerics string) (*tilthv1.Record, error)
	// BestPage returns the best record of every workload on a target (empty for all targets), sorted by target and
	// workload: at most limit records and maxBytes encoded bytes, except for a single larger record, starting after a
	// mark ("" for the beginning). next is the mark for the following page, "" after the last. Records added meanwhile
	// may or may not be included.
	BestPage(target, after string, limit, maxBytes int) (best []*tilthv1.Record, next string, err error)
	// List visits all matching records, grouped by target and workload, oldest first within a group. An empty target
	// or workload matches all. The first record of each group has the workload's canonical form. Records added
	// meanwhile may or may not be visited. visit may be slow.
	List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error
	// GroupPage returns at most limit groups that have records, sorted by target and workload, on a target (empty for
	// all), starting after a mark ("" for the beginning). next is the mark for the following page, "" after the last.
	// A page may be empty although others follow.
	GroupPage(target, after string, limit int) (groups []Group, next string, err error)
	// KeyPage returns at most limit keys of a group's records from a key on, in order; none only after the last.
	KeyPage(of Group, from Key, limit int) ([]Key, error)
	// RecordsOf returns those records of the given keys that exist. It stops after maxBytes encoded bytes, but
	// examines at least one key; looked is the number of keys examined. The first record has the workload's canonical
	// form.
	RecordsOf(of Group, keys []Key, maxBytes int) (found []*tilthv1.Record, looked int, err error)
	// Known summarizes the newest records of a workload on a target, at most limit: the best that a level of numerics
	// allows (empty for any), and the latency of a candidate, if a digest is given.
	Known(target, workloadDigest, numerics, candidate string, limit int) (Known, error)
	// Import adds the records that next returns until io.EOF, all or none, and skips existing ones. After an error of
	// next, of a record (ErrInvalid) or of ctx, the store is unchanged.
	Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error)
	// Prune removes records in bounded transactions and counts removed and kept ones. An interrupted prune has removed
	// some records and leaves the store consistent.
	Prune(ctx context.Context, opts PruneOptions) (removed, kept uint64, err error)
}

// File is implemented by stores that keep a file.
type File interface {
	// Path returns the file's name.
	Path() string
	// FreeBytes returns the size of the file's reusable pages.
	FreeBytes() int64
	// Restored returns when the backup was made from which this generation started, or zero if it continues the
	// previous one.
	Restored() time.Time
	// Backup writes a consistent snapshot of the file, including everything committed before the call, and returns its
	// size. Commits continue meanwhile.
	Backup(w io.Writer) (sizeBytes int64, err error)
	// BackupTo writes a backup to a file. The file appears, replacing any existing one, only after all of it is on
	// disk and has been verified.
	BackupTo(ctx context.Context, path string, at time.Time) (*Report, error)
	// Scrub checks all rows once while the file is in use. It reports and sets aside damaged rows (see OnDamage). It
	// calls pace every few hundred kilobytes with the rows and bytes checked; an error of pace ends the scrub.
	Scrub(ctx context.Context, pace func(rows, sizeBytes int) error) error
	// OnDamage calls f once for each damage found since the file was opened, and for later ones. f must not block or
	// call the store.
	OnDamage(f func(*Damage))
	// Damaged returns the number of damaged rows found since the file was opened.
	Damaged() uint64
}

// Remote is implemented by stores that use a server. While the server is unavailable, look-ups fail with ErrAway, and
// commits wait until it is back.
type Remote interface {
	// Unavailable returns why the server is unavailable, or nil as far as is known.
	Unavailable() error
	// OnUnavailable calls f whenever the server becomes unavailable, with the reason, and with nil when it is back. f
	// must not block or call the store.
	OnUnavailable(f func(why error))
	// OnFailed calls f once when all further commits fail, with the reason: ErrTakenOver if another process has taken
	// over the store. f must not block or call the store.
	OnFailed(f func(why error))
}

// Versioned is implemented by stores that trackers of several versions may use concurrently.
type Versioned interface {
	// Schema returns the version of the store's layout, and own is this program's. The store's may be newer if it is
	// compatible.
	Schema() (version, own int)
}

// Transaction describes a transaction of the store.
type Transaction struct {
	// Took is its total time, Sync the part spent waiting for the disk.
	Took, Sync time.Duration
	// Commits is the number of commits in it.
	Commits int
}
