package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// inCommon is a folder of what the caches of all tests have in common.
var inCommon string

// all are this package's tests, with that folder.
type all struct{ *testing.M }

// Run runs the tests and returns the status to exit with.
func (a all) Run() int {
	var err error
	if inCommon, err = os.MkdirTemp("", "tilth-test-*"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(inCommon)
	return a.M.Run()
}

// shareCaches lets a folder of the program's caches have the parts in common that are the same for everyone: what is
// built, by the digest of what it is built from, and what the machine was measured to do. Most of what a farm compiles
// before its first trial, and the time that measuring takes, would otherwise be spent again in each test. Scratch
// folders, and what records say, remain the folder's own.
func shareCaches(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, part := range []string{"builds", "objects", "rates"} {
		shared := filepath.Join(inCommon, part)
		if err := os.MkdirAll(shared, 0o700); err != nil {
			return err
		}
		if err := os.Symlink(shared, filepath.Join(dir, part)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
