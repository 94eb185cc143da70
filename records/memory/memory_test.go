package memory_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/memory"
)

func TestFullStoreFailsAllLaterCommits(t *testing.T) {
	s := memory.New(memory.Options{MaxSizeBytes: 64 << 10})
	big := storetest.Record("cpu", "conv", 1, 1)
	big.Measurement.Candidate.Origin = make([]byte, 100<<10)
	storetest.Add(t, s, big)
	w := &records.Write{}
	w.AddRecord(storetest.Record("cpu", "conv", 2, 1))
	first := s.Commit(w).Wait(t.Context())
	if first == nil || !strings.Contains(first.Error(), "keep them in a file") {
		t.Fatalf("commit to a full store: %v", first)
	}
	if err := s.Commit(&records.Write{}).Wait(t.Context()); !errors.Is(err, first) {
		t.Errorf("the next commit: %v, want %v", err, first)
	}
	if got := storetest.List(t, s, "", ""); len(got) != 1 {
		t.Errorf("the store has %d records, want 1", len(got))
	}
}

func TestImportLargerThanTheStoreIsRolledBack(t *testing.T) {
	s := memory.New(memory.Options{MaxSizeBytes: 64 << 10})
	if _, _, err := s.Import(t.Context(), storetest.Numbered(storetest.ImportSize, io.EOF)); err == nil {
		t.Error("the import succeeded")
	}
	storetest.Add(t, s, storetest.Record("cpu", "conv", 1, 1))
	if got := storetest.List(t, s, "", ""); len(got) != 1 {
		t.Errorf("the store has %d records, want 1", len(got))
	}
}
