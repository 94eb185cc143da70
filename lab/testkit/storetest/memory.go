package storetest

import (
	"testing"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// Memory opens an empty store in memory for the duration of the test.
func Memory(t testing.TB, opts bolt.Options) records.Store {
	t.Helper()
	s, err := bolt.OpenMemory(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
