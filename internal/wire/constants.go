package wire

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
