package tuner

// Ear receives search statistics. Its methods are called from several goroutines and must not block.
type Ear interface {
	// Searched reports one search for a batch.
	Searched(candidates int, seconds float64)
	// Ranked reports how the model ranked a measured candidate; see Options.Ranked.
	Ranked(right, wrong int)
}

// deaf is an Ear that discards everything.
type deaf struct{}

func (deaf) Searched(int, float64) {}

func (deaf) Ranked(int, int) {}
