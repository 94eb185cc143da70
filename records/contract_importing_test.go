package records_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func anImportSkipsWhatIsThere(t *testing.T, k storeKind) {
	s := fresh(t, k)
	storetest.Add(t, s, storetest.Record("cpu", "w1", 2, 0.5)) // equals one of the imported records
	imported, skipped, err := s.Import(t.Context(), storetest.Numbered(6000, io.EOF))
	if err != nil || imported != storetest.ImportSize-1 || skipped != 6000-storetest.ImportSize+1 {
		t.Errorf("imported %d, skipped %d, %v", imported, skipped, err)
	}
	if n := len(storetest.List(t, s, "", "")); n != storetest.ImportSize {
		t.Errorf("%d records are there", n)
	}
}

func anImportThatFailsLeavesNothing(t *testing.T, k storeKind) {
	s := fresh(t, k)
	storetest.Add(t, s, storetest.Record("cpu", "mine", 1, 0.5))
	broken := errors.New("the line broke")
	if _, _, err := s.Import(t.Context(), storetest.Numbered(700, broken)); !errors.Is(err, broken) {
		t.Errorf("the import failed with %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	next := storetest.Numbered(700, io.EOF)
	_, _, err := s.Import(cancelled, func() (*tilthv1.Record, error) {
		cancel(broken)
		return next()
	})
	if !errors.Is(err, broken) {
		t.Errorf("the import that was cancelled failed with %v", err)
	}
	// Files come from anywhere, like calls.
	large := storetest.Record("cpu", "w", 1, 0.5)
	large.Measurement.SamplesSeconds = slices.Repeat([]float64{0.5}, 1<<20)
	_, _, err = s.Import(t.Context(), func() (*tilthv1.Record, error) { return large, nil })
	if !errors.Is(err, records.ErrInvalid) || !strings.Contains(err.Error(), "measurement.samples_seconds: has more than 16384 items") {
		t.Errorf("a record beyond the bounds of the wire: %v", err)
	}
	if n := len(storetest.List(t, s, "", "")); n != 1 {
		t.Errorf("%d records are there, want the one from before", n)
	}
}
