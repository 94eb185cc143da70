package wire

// Capabilities are what agents say they know, by which the tracker chooses among them: runners the first two, tuners
// the last.
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

// Levels of numerics: how much accuracy the algorithms of a schedule may lose, the most careful first. Package
// schedule says what each allows.
const (
	NumericsStrict  = "strict"
	NumericsDefault = "default"
	NumericsFast    = "fast"
)
