package aot

import (
	"fmt"
	"os"
	"testing"
)

// scratch is a folder for what several tests use.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "tilth-aot-test-*"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(scratch) // a folder for temporary files
	os.Exit(status)
}
