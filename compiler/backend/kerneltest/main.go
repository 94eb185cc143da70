package kerneltest

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// seedVariable is what the environment may set to draw other cases than the usual ones.
const seedVariable = "TILTH_TEST_SEED"

// Main runs the tests of a package that draws batches of cases: fewer than rapid's default of 100, and the same ones
// in every run, so that they are compiled once. -rapid.checks asks for more; -rapid.seed, or TILTH_TEST_SEED in the
// environment, for others.
func Main(m *testing.M, checks int) {
	seed := os.Getenv(seedVariable)
	if seed == "" {
		seed = "1"
	}
	for name, value := range map[string]string{"rapid.checks": fmt.Sprint(checks), "rapid.seed": seed} {
		f := flag.Lookup(name)
		f.DefValue = value
		if err := f.Value.Set(value); err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
	}
	os.Exit(m.Run())
}
