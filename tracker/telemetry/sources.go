package telemetry

import (
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Sources are the functions from which metrics are collected.
type Sources struct {
	// State, Jobs and Devices are Figures, OldestJobs and Devices of the machine.
	State   func() state.Figures
	Jobs    func(limit int) []state.JobFigures
	Devices func(limit int) (states map[tilthv1.DeviceState]int, warned int, furthest []state.DeviceFigures)
	// Streams returns the number of event streams.
	Streams func() int
	// Store is the records store. File is its file and Remote its database server; each may be nil. Artifacts returns
	// the artifact store's statistics, FreeBytes the free space for records and artifacts.
	Store     Store
	File      File
	Remote    Remote
	Artifacts func() artifact.Stats
	FreeBytes func() (int64, error)
	// RequestBytes and AnswerBytes return the memory held by requests and responses.
	RequestBytes, AnswerBytes func() int64
	// CertificateExpiry returns when the tracker's certificate expires; nil without one.
	CertificateExpiry func() time.Time
	// IssuerKeysRead returns when the token issuer's keys were last read, or zero; nil without an issuer.
	IssuerKeysRead func() time.Time
	// BackupEvery is the interval between backups; 0 means none.
	BackupEvery time.Duration
}

// Store is the part of a store that metrics need.
type Store interface {
	// SizeBytes returns the store's size.
	SizeBytes() int64
	// Observe registers a function that is called for every transaction.
	Observe(func(records.Transaction))
}

// Remote is the part of a database server that metrics need.
type Remote interface {
	// Unavailable returns why the server is unavailable, or nil.
	Unavailable() error
}

// File is the part of a records file that metrics need.
type File interface {
	// FreeBytes returns the size of reusable pages, Damaged the number of damaged rows found.
	FreeBytes() int64
	Damaged() uint64
}
