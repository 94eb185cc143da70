package kerneltest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// seedVariable is the environment variable that selects other random cases.
const seedVariable = "TILTH_TEST_SEED"

// Main runs the tests of a package that draws batches of cases. It sets rapid's number of checks: one in the quick
// tier, checks in the slow tier. The seed is the same in every run, so that batches are compiled once. -rapid.checks
// requests more, and -rapid.seed or TILTH_TEST_SEED other cases.
func Main(m *testing.M, checks int) {
	seed := os.Getenv(seedVariable)
	if seed == "" {
		seed = "1"
	}
	setDefault("rapid.seed", seed)
	setDefault("rapid.checks", fmt.Sprint(checks))
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if testing.Short() && !asked {
		setDefault("rapid.checks", "5") // rapid divides it by five in the quick tier
	}
	os.Exit(m.Run())
}

func setDefault(name, value string) {
	f := flag.Lookup(name)
	f.DefValue = value
	if err := f.Value.Set(value); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
}

// quickBatch is the number of cases of a batch in the quick tier.
const quickBatch = 6

// Batch draws a batch of at most size cases for one translation unit. The quick tier draws a small batch of fixed
// size.
func Batch(t *rapid.T, one *rapid.Generator[Case], size int) []Case {
	low, high := 1, size
	if testing.Short() {
		low, high = min(size, quickBatch), min(size, quickBatch)
	}
	return rapid.SliceOfN(one, low, high).Draw(t, "cases")
}
