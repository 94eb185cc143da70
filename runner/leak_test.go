package runner

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// scratch is a folder that several tests share.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "tilth-runner-test-*"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(scratch) // a temporary folder
		os.Exit(status)
	}))
}
