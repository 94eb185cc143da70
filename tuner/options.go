package tuner

import "github.com/tilth-dev/tilth/compiler/space"

// Options are what a search may choose. The zero value of a switch is the whole algorithm; each one leaves a part of
// gbdt out, so that what the part is worth can be measured. The other algorithms have none of these parts, but NoSeeds
// is heard by ga.
type Options struct {
	// Algorithm is one of Names; empty means gbdt.
	Algorithm string
	// Seed determines all draws.
	Seed uint64
	// NoTransfer ignores what was measured before the job.
	NoTransfer bool
	// NoModel ranks by the analytic cost alone.
	NoModel bool
	// NoDraft ranks points as they are drawn, without choosing the analytically best of many.
	NoDraft bool
	// NoSeeds leaves out the hand-written points of the space.
	NoSeeds bool
	// Imported are points that other compilers chose. One of them is tried before what the search
	// chooses itself.
	Imported []space.Point
	// Ranked, when set, hears of each candidate that was measured with how many others of its batch, of those measured
	// before it and more than 5 % faster or slower, the model had ranked it right and wrong.
	Ranked func(right, wrong int)
}
