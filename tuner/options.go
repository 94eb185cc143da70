package tuner

import "github.com/tilth-dev/tilth/compiler/searchspace"

// Options configures a search. Each switch disables a part of gbdt, so that its contribution can be measured;
// the zero value enables everything. Of the switches, the other algorithms only support NoSeeds (in ga).
type Options struct {
	// Algorithm is one of Names; empty means gbdt.
	Algorithm string
	// Seed determines all random draws.
	Seed uint64
	// NoTransfer ignores measurements from before the job.
	NoTransfer bool
	// NoModel ranks by the analytic cost alone.
	NoModel bool
	// NoDraft ranks points as drawn, without selecting those with the lowest analytic cost.
	NoDraft bool
	// NoSeeds leaves out the hand-written points of the space.
	NoSeeds bool
	// Imported holds points that other compilers chose. One of them is tried before the search's own choices.
	Imported []searchspace.Point
	// Ranked, if set, is called for each measured candidate. Of the candidates of its batch that were measured earlier
	// and are more than 5 % faster or slower, the model had ranked right correctly and wrong wrongly.
	Ranked func(right, wrong int)
}
