package bolt_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

func openMemory(t *testing.T) records.Store {
	t.Helper()
	s, err := bolt.OpenMemory(bolt.Options{MaxSizeBytes: 24 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStoreInMemoryThatIsFullFailsEveryLaterCommitToo(t *testing.T) {
	s := openMemory(t)
	storetest.Add(t, s, storetest.Record("cpu", "conv", 1, 1))
	big := storetest.Record("cpu", "conv", 2, 1)
	big.Measurement.Candidate.Origin = make([]byte, 24<<20)
	w := &records.Write{}
	w.AddRecord(big)
	first := s.Commit(w).Wait(t.Context())
	if first == nil || !strings.Contains(first.Error(), "keep them in a file") {
		t.Fatalf("a commit to a store that is full: %v", first)
	}
	if err := s.Commit(&records.Write{}).Wait(t.Context()); !errors.Is(err, first) {
		t.Errorf("the next commit: %v, want %v", err, first)
	}
	if got := storetest.List(t, s, "", ""); len(got) != 1 {
		t.Errorf("%d records are in the store", len(got))
	}
}

// TestImportIntoMemoryIsStoredOrRefused checks imports of small records, each of a workload of its own, of which the
// store has most rows.
func TestImportIntoMemoryIsStoredOrRefused(t *testing.T) {
	for _, c := range []struct {
		count  int
		stored bool
	}{{5_000, true}, {20_000, false}} {
		s, read := openMemory(t), 0
		_, _, err := s.Import(t.Context(), func() (*tilthv1.Record, error) {
			if read++; read > c.count {
				return nil, io.EOF
			}
			return storetest.Record("cpu", fmt.Sprint(read), 1, 1), nil
		})
		if c.stored != (err == nil) || err != nil && !strings.Contains(err.Error(), "keep them in a file") {
			t.Errorf("%d records: %v", c.count, err)
		}
		want := 1
		if c.stored {
			want += c.count
		}
		storetest.Add(t, s, storetest.Record("cpu", "conv", 2, 1))
		if got := storetest.List(t, s, "", ""); len(got) != want {
			t.Errorf("%d records are in the store, want %d", len(got), want)
		}
	}
}
