package records

import (
	"context"
	"io"
	"time"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Store keeps what a farm must not forget. Its methods may be called from many goroutines. What they return belongs to
// the caller. Look-ups of a single thing fail with ErrNotFound when it is not there.
type Store interface {
	Jobs
	Batches
	Measurements

	// Commit hands in a write. Writes are stored in the order of the calls, each whole or not at all. After one has
	// failed every later one fails with the same error: what follows may build on what was lost. After Close it is
	// ErrClosed.
	Commit(w *Write) *Pending
	// Observe has f told of every later transaction that wrote. One observer at a time; f must not block.
	Observe(f func(Transaction))

	// Agents calls visit with every agent that is kept, by name. One of them is in memory at a time.
	Agents(visit func(*tilthv1.Agent)) error
	// Devices calls visit with every device of which something was decided, by name.
	Devices(visit func(name string, row *storev1.DeviceRow)) error

	// Life names the time between two openings of the store for writing: see IsLife. Who gives names to what the store
	// keeps makes it part of them. When the store loses something, names that were given before are then nobody's.
	Life() string
	// SizeBytes is how much the store takes.
	SizeBytes() int64
	// Close waits for the commits already handed in.
	Close() error
}

// Jobs are what is stored of jobs.
type Jobs interface {
	// Job returns a job with its specification and progress.
	Job(id string) (*tilthv1.Job, error)
	// JobRow returns a job's row: its state and lease without specification and progress.
	JobRow(id string) (*storev1.JobRow, error)
	// JobOwner returns the owner of a job. It does not decode the job's workloads.
	JobOwner(id string) (owner Owner, err error)
	// JobByRequest returns the id of the job that an owner's request made.
	JobByRequest(owner, requestID string) (id string, err error)
	// Jobs returns jobs, newest first, without their workloads and what each package of a run told of itself. next is
	// what Before is for the page that follows; it is empty after the last one, and never names a job that q.Sees
	// leaves out. A page may have fewer jobs than asked for, or none, and others follow.
	Jobs(q JobQuery) (jobs []*tilthv1.Job, next string, err error)
	// OpenJobs returns all jobs that have not ended, oldest first.
	OpenJobs() ([]*OpenJob, error)
	// LastJobID returns the id of the newest job that there ever was; empty when there was none.
	LastJobID() (id string, err error)
	// EndedJobs calls visit with every job that has ended and is kept, by id.
	EndedJobs(visit func(id string, row *storev1.EndedRow)) error
	// Events returns some events of a job, from a sequence number on, in order: at most limit, and fewer where they
	// are large. There are none only where none follow. The measurement of a trial whose record was pruned is missing.
	Events(jobID string, from uint64, limit int) ([]*tilthv1.JobEvent, error)
	// Sweep removes what is left of jobs that were dropped, a bounded number of rows in a transaction. What is left
	// when it is interrupted goes with the next.
	Sweep(ctx context.Context) error
}

// Batches are what is stored of batches.
type Batches interface {
	// OpenBatches returns all batches under way with their candidates, in the order of their ids.
	OpenBatches() ([]*OpenBatch, error)
	// DeadBatch returns a batch that the farm gave up, with its candidates.
	DeadBatch(id string) (*OpenBatch, error)
	// ClosedBatch returns what is kept of a batch that ended; none that is under way is found.
	ClosedBatch(id string) (*storev1.BatchRow, error)
	// ClosedProposal returns what is kept of a batch that ended, and its id, by what its id is or begins with before a
	// hyphen; none that is under way is found.
	ClosedProposal(begin string) (id string, row *storev1.BatchRow, err error)
	// ClosedJobs returns the ids of the jobs of which closed batches are kept, in their order, with the number of
	// batches that each has proposed. It looks at one row of each.
	ClosedJobs() (ids []string, proposals []uint64, err error)
}

// Measurements are the records. A target means the groups of NamesOf: empty, all of shared records; those of an
// owner's private ones have a name of their own, see Private.
type Measurements interface {
	// BestAllowed returns the best record of a workload on a target that a level of numerics allows, with the
	// workload's canonical form; an empty level allows all. It does not depend on how many records there are.
	// ErrInvalid when there is no such level.
	BestAllowed(target, workloadDigest, numerics string) (*tilthv1.Record, error)
	// BestPage returns the best record of every workload, ordered by target and workload, or of a target alone (empty
	// = every): at most so many records and so many bytes of them encoded, but for one that is larger by itself, from
	// the first after a mark on (empty = the beginning). next is the mark for the page that follows, empty after the
	// last one. Records that come meanwhile may or may not be met.
	BestPage(target, after string, most, mostBytes int) (best []*tilthv1.Record, next string, err error)
	// List calls visit with every record that matches, grouped by target and workload, oldest first within a group; an
	// empty target or workload matches all. The first record of each group carries the workload's canonical form.
	// Records that are added meanwhile may or may not be met. visit may take its time.
	List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error
	// GroupPage returns some of the groups that have records, ordered by target and workload, or of a target alone
	// (empty = every): at most so many, from the first after a mark on (empty = the beginning). next is the mark for
	// the page that follows, empty after the last one. A page may have none, and others follow.
	GroupPage(target, after string, most int) (groups []Group, next string, err error)
	// KeyPage returns the keys of a group's records from a key on, in order, at most so many. There are none only
	// where none follow.
	KeyPage(of Group, from Key, most int) ([]Key, error)
	// Some returns those of a group's records that are there, of as many of the keys as so many bytes of them encoded
	// take, but at least of one: looked is how many keys that were. The first carries the workload's canonical form.
	Some(of Group, keys []Key, mostBytes int) (found []*tilthv1.Record, looked int, err error)
	// Known sums up the records of a workload on a target: so many of them at most, newest first, the best that a
	// level of numerics allows (empty = any level), and the candidate of a digest (empty = none is asked for) if it is
	// among those.
	Known(target, workloadDigest, numerics, candidate string, most int) (Known, error)
	// Import adds the records that next returns until io.EOF: all of them or none, whatever happens. Those that are
	// already there are skipped. An error of next, of a record (ErrInvalid) or of ctx leaves the store as it was.
	Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error)
	// Prune removes the records that do not stay, a bounded number in a transaction, and returns how many went and how
	// many of those looked at stayed. When it is interrupted some are gone and the store is as good as before.
	Prune(ctx context.Context, opts PruneOptions) (removed, kept uint64, err error)
}

// File is what a store can do besides that keeps a file.
type File interface {
	// Path is the file's name.
	Path() string
	// FreeBytes is the part of the file that was used once and will be used again before it grows.
	FreeBytes() int64
	// Restored is when the copy was made as which the store's life began; zero when it goes on from the one before.
	Restored() time.Time
	// Backup writes the whole file as it is at one instant, with all that was committed before the call, and returns
	// its size. Commits go on meanwhile.
	Backup(w io.Writer) (sizeBytes int64, err error)
	// BackupTo makes a backup in a file, which appears when all of it is on the disk, was read again, and is without
	// damage. A file that is there is replaced.
	BackupTo(ctx context.Context, path string, at time.Time) (*Report, error)
	// Scrub checks all rows once while the file is in use; what is damaged is noted, and set aside (see OnDamage).
	// pace is called after every few hundred kilobytes with how many rows and bytes were checked; its error ends the
	// scrub.
	Scrub(ctx context.Context, pace func(rows, sizeBytes int) error) error
	// OnDamage has f told of all damage that is met, and was met since the file was opened, once each. f must not
	// block, nor call the store.
	OnDamage(f func(*Damage))
	// Damaged is how many damaged rows were met since the file was opened.
	Damaged() uint64
}

// Remote is what a store can do besides that keeps what is stored at a server. While that is away, look-ups fail with
// ErrAway, and commits wait: they are stored when it is back.
type Remote interface {
	// Away is why the server is away; nil while it is there, as far as is known.
	Away() error
	// OnAway has f told each time that the server is away, and why, and that it is back (nil). f must not block, nor
	// call the store.
	OnAway(f func(why error))
	// OnFailed has f told once that every commit fails from here on, and why: ErrTakenOver when another process has
	// the store. f is held to what OnAway says.
	OnFailed(f func(why error))
}

// Versioned is what a store can do besides that trackers of several versions use side by side.
type Versioned interface {
	// Schema is the version of how the store keeps what it does, and own is this program's. A later one may be used by
	// this program, too, or the store would not be open.
	Schema() (version, own int)
}

// Transaction is what a transaction of the store came to.
type Transaction struct {
	// Took is its time in all, and Sync the part in which pages were handed to the disk and it said that it has them.
	Took, Sync time.Duration
	// Commits is how many it carried.
	Commits int
}
