package wire

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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

// Capabilities of agents, by which the tracker assigns work: the first two of runners, the last of tuners.
const (
	RunsPackages = "run"
	Calibrates   = "calibrate"
	ReadsModels  = "model"
)

// Roles of the artifacts that a runner needs. A batch may have several artifacts of candidates.
const (
	RoleCandidates = "candidates"
	RoleReference  = "reference"
	RoleHarness    = "harness"
)

// Levels of numerics: how much accuracy a schedule's algorithms may lose, strictest first. Package schedule defines
// what each allows.
const (
	NumericsStrict  = "strict"
	NumericsDefault = "default"
	NumericsFast    = "fast"
)

// ModelFiles returns all files needed to read the models of a job: models first, in their order, then seeds.
func ModelFiles(m *tilthv1.ModelSpec) []*tilthv1.ArtifactRef {
	files := []*tilthv1.ArtifactRef{m.GetFile()}
	for _, o := range m.GetOthers() {
		files = append(files, o.GetFile())
	}
	for _, s := range m.GetSeeds() {
		files = append(files, s.GetFile())
	}
	return files
}

// NoPackage returns why no package can be made of a job, phrased to follow the job's id, or "".
func NoPackage(j *tilthv1.Job) string {
	switch spec := j.GetSpec(); {
	case j.GetEndedAt() == nil:
		return "has not ended: wait for it, or cancel it"
	case spec.GetModel() == nil:
		return "has no model: use 'tilth compile'"
	case len(spec.GetTasks()) == 0:
		return "has no tasks, since its model was not read"
	case len(spec.GetModel().GetOthers()) > 0:
		return "has several models: use 'tilth compile' for each"
	}
	return ""
}
