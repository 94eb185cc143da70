package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ImportSize is the number of distinct records of Numbered.
const ImportSize = 2100

// Numbered yields n records, then err.
func Numbered(n int64, err error) func() (*tilthv1.Record, error) {
	at := int64(0)
	return func() (*tilthv1.Record, error) {
		if at++; at > n {
			return nil, err
		}
		return Record("cpu", fmt.Sprint("w", at%3), 1+at%ImportSize, 0.5), nil
	}
}

func anImportSkipsWhatIsThere(t *testing.T, k Kind) {
	s := fresh(t, k)
	Add(t, s, Record("cpu", "w1", 2, 0.5)) // equals one of the imported records
	imported, skipped, err := s.Import(t.Context(), Numbered(6000, io.EOF))
	if err != nil || imported != ImportSize-1 || skipped != 6000-ImportSize+1 {
		t.Errorf("imported %d, skipped %d, %v", imported, skipped, err)
	}
	if n := len(List(t, s, "", "")); n != ImportSize {
		t.Errorf("%d records are there", n)
	}
}

func anImportThatFailsLeavesNothing(t *testing.T, k Kind) {
	s := fresh(t, k)
	Add(t, s, Record("cpu", "mine", 1, 0.5))
	broken := errors.New("the line broke")
	if _, _, err := s.Import(t.Context(), Numbered(700, broken)); !errors.Is(err, broken) {
		t.Errorf("the import failed with %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	next := Numbered(700, io.EOF)
	_, _, err := s.Import(cancelled, func() (*tilthv1.Record, error) {
		cancel(broken)
		return next()
	})
	if !errors.Is(err, broken) {
		t.Errorf("the import that was cancelled failed with %v", err)
	}
	// Files come from anywhere, like calls.
	large := Record("cpu", "w", 1, 0.5)
	large.Measurement.SamplesSeconds = slices.Repeat([]float64{0.5}, 1<<20)
	_, _, err = s.Import(t.Context(), func() (*tilthv1.Record, error) { return large, nil })
	if !errors.Is(err, records.ErrInvalid) || !strings.Contains(err.Error(), "measurement.samples_seconds: has more than 16384 items") {
		t.Errorf("a record beyond the bounds of the wire: %v", err)
	}
	if n := len(List(t, s, "", "")); n != 1 {
		t.Errorf("%d records are there, want the one from before", n)
	}
}
