package telemetry

import (
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Sources are what is asked for figures when metrics are collected.
type Sources struct {
	// State, Jobs and Devices are of the machine: see its Figures, OldestJobs and Devices.
	State   func() state.Figures
	Jobs    func(most int) []state.JobFigures
	Devices func(most int) (states map[tilthv1.DeviceState]int, warned int, furthest []state.DeviceFigures)
	// Streams are those of events that are sent.
	Streams func() int
	// Store is the records, File the file that has them, nil when there is none, and Remote the server, nil when there
	// is none. Artifacts are those beside the file, and FreeBytes is the room for both.
	Store     Store
	File      File
	Remote    Remote
	Artifacts func() artifact.Stats
	FreeBytes func() (int64, error)
	// RequestBytes and AnswerBytes are what requests and answers hold of memory.
	RequestBytes, AnswerBytes func() int64
	// CertificateExpiry is when the tracker's certificate expires; nil when it has none.
	CertificateExpiry func() time.Time
	// IssuerKeysRead is when the keys of the issuer of callers' tokens were last read, zero = never; nil when there is
	// no issuer.
	IssuerKeysRead func() time.Time
	// BackupEvery is the time from one backup to the next; 0 = none are made.
	BackupEvery time.Duration
}

// Store is what is told of all stores.
type Store interface {
	// SizeBytes is how much it takes.
	SizeBytes() int64
	// Observe has every transaction told.
	Observe(func(records.Transaction))
}

// Remote is what is told of a database's server.
type Remote interface {
	// Away is why it is away; nil while it is there.
	Away() error
}

// File is what is told of a records file.
type File interface {
	// FreeBytes is the part of it that is used again, and Damaged how many rows were found so.
	FreeBytes() int64
	Damaged() uint64
}
