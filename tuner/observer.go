package tuner

// Observer receives search statistics. Its methods are called from several goroutines and must not block.
type Observer interface {
	// Searched reports one search for a batch.
	Searched(candidates int, seconds float64)
	// Ranked reports how the model ranked a measured candidate; see Options.Ranked.
	Ranked(right, wrong int)
}

// nopObserver is an Observer that discards everything.
type nopObserver struct{}

// Searched implements Observer.
func (nopObserver) Searched(int, float64) {}

// Ranked implements Observer.
func (nopObserver) Ranked(int, int) {}
