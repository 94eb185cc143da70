package records

import "errors"

var (
	// ErrMissing is returned by OpenReadOnly when there is no file.
	ErrMissing = errors.New("no such records file")
	// ErrLocked is returned by Open and OpenReadOnly when another process has the file open for writing.
	ErrLocked = errors.New("in use by another process")
	// ErrVersion is returned when a file (store or export) was written by a Tilth of a version that this one does not
	// read.
	ErrVersion = errors.New("written by another version of Tilth")
	// ErrDamaged is returned when a file is not what was written: cut short, overwritten, or not a records file at
	// all.
	ErrDamaged = errors.New("damaged or not a records file")
	// ErrNotFound is returned by look-ups of a single job, batch or agent that is not there.
	ErrNotFound = errors.New("not found")
	// ErrClosed is returned by commits after Close.
	ErrClosed = errors.New("records file is closed")
	// ErrAway is returned by look-ups while the server of the store's database is away. What is to be stored waits.
	ErrAway = errors.New("the server of the database is away")
	// ErrInUse is returned when transactions that last keep a change of the database's schema from its tables. Whoever
	// opens the store may try again.
	ErrInUse = errors.New("transactions use tables that are to be changed: end those that last, which pg_stat_activity lists")
	// ErrTakenOver is returned by commits after another process has taken the store over.
	ErrTakenOver = errors.New("another tracker has taken it over: this one stops")
	// ErrShards is returned when a store has another number of shards than it is opened with.
	ErrShards = errors.New("the database has another number of shards")
	// ErrUnfinished is returned when a store has only a part of what was to be copied into it.
	ErrUnfinished = errors.New("its conversion is not finished")
	// ErrNotEmpty is wrapped by the error of a conversion into a store that has anything but an unfinished part of it.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrDiffers is wrapped by the error of a conversion whose target is not what the source is.
	ErrDiffers = errors.New("the target differs from the source")
	// ErrInvalid is wrapped by the errors of Validate and of an import that holds a record that cannot be.
	ErrInvalid = errors.New("invalid record")
)
