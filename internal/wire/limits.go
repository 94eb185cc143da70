package wire

import "time"

// Limits of a job.
const (
	// DefaultPriority is the priority of jobs that request none, MaxPriority the highest.
	DefaultPriority = 10
	MaxPriority     = 100
)

// Limits of kernels written by a job's owner.
const (
	MaxKernels = 16
	// KernelBytes bounds a kernel with its source, so that a trace that contains it stays within its own bound.
	KernelBytes = 48 << 10
)

// Limits of a task's seeds: their number, and the length of each.
const (
	MaxSeeds  = 8
	SeedBytes = 4 << 10
)

// Limits of a batch.
const (
	// BatchCandidates is the default number of candidates that a tuner proposes together.
	BatchCandidates = 32
	// MaxFinalists bounds the candidates that are measured in turn: all are in a device's memory at once.
	MaxFinalists = 8
)

// MaxOffers bounds the toolchains, device classes or tuners of an agent: each has a queue that is searched for work.
const MaxOffers = 256

// Record keys have RecordKeyBytes bytes; a message has at most MaxRecordKeys.
const (
	RecordKeyBytes = 16
	MaxRecordKeys  = 2048
)

// LongestWait bounds long polls: for work, or for a device to drain.
const LongestWait = time.Minute

// Sizes in bytes.
const (
	// TextBytes bounds reasons and messages.
	TextBytes = 4 << 10
	// FailureBytes bounds the message of a failed trial, as the store does.
	FailureBytes = 16 << 10
	// PieceBytes is the size of the pieces in which files are sent.
	PieceBytes = 256 << 10
)
