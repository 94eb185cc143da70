package wire

import "time"

// What a job may ask for.
const (
	// DefaultPriority is that of a job that asks for none, MostPriority the highest.
	DefaultPriority = 10
	MostPriority    = 100
)

// What a job may have of kernels that its owner wrote.
const (
	MostKernels = 16
	// KernelBytes bounds one with its source, so that a trace that holds it stays within its own bound.
	KernelBytes = 48 << 10
)

// What a task may have of seeds: how many, and how long each of them is.
const (
	MostSeeds = 8
	SeedBytes = 4 << 10
)

// What a batch may have.
const (
	// BatchCandidates is how many candidates tuners propose together, unless they are told otherwise.
	BatchCandidates = 32
	// MostFinalists is how many candidates may take turns: all of them are in a device's memory at once.
	MostFinalists = 8
)

// MostOffers bounds the toolchains, device classes or tuners of an agent: each has a queue in which its work is looked
// for.
const MostOffers = 256

// Records are named by keys of RecordKeyBytes, of which a message has no more than MostRecordKeys.
const (
	RecordKeyBytes = 16
	MostRecordKeys = 2048
)

// LongestWait bounds a call that waits: for work, or for a device to drain.
const LongestWait = time.Minute

// Sizes in bytes.
const (
	// TextBytes bounds reasons and messages.
	TextBytes = 4 << 10
	// FailureBytes bounds what a trial failed with: as much as the store keeps.
	FailureBytes = 16 << 10
	// PieceBytes is how much of a file is sent at once.
	PieceBytes = 256 << 10
)
