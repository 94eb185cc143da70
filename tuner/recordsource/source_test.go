package recordsource

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/compiler/schedule"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func TestFileIsReadAndAddedTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tilth.db")
	if _, err := OpenFile(path, false, slog.New(slog.DiscardHandler)); !errors.Is(err, records.ErrMissing) {
		t.Errorf("reading a file that is not there: %v", err)
	}
	trace := []byte("trace")
	known := records.Digest([]byte("conv"))
	all := []*tilthv1.Record{{Target: "cpu", WorkloadDigest: known, Measurement: &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		SamplesSeconds: []float64{0.5}, LatencySeconds: 0.5, At: timestamppb.New(time.Unix(1, 0)),
	}}}
	source, err := OpenFile(path, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	imported, _, err := source.Import(t.Context(), func() (*tilthv1.Record, error) {
		if len(all) == 0 {
			return nil, io.EOF
		}
		first := all[0]
		all = all[1:]
		return first, nil
	})
	if err = errors.Join(err, source.Close()); err != nil || imported != 1 {
		t.Fatalf("imported %d: %v", imported, err)
	}
	if source, err = OpenFile(path, false, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	for name, workloads := range map[string][]string{
		"all": nil, "some": {records.Digest([]byte("pool")), known},
	} {
		best, err := source.Best(t.Context(), "cpu", schedule.Strict, workloads...)
		if err != nil || !slices.EqualFunc(best, []string{known}, func(r *tilthv1.Record, d string) bool { return r.GetWorkloadDigest() == d }) {
			t.Errorf("%s: best %v, %v", name, best, err)
		}
	}
}

// TestReadersReportDamagedRecords is a regression test: listings and exports skipped damaged records
// silently.
func TestReadersReportDamagedRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tilth.db")
	source, err := OpenFile(path, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	traces := []string{"one trace", "another trace"}
	_, _, err = source.Import(t.Context(), func() (*tilthv1.Record, error) {
		if len(traces) == 0 {
			return nil, io.EOF
		}
		trace := []byte(traces[0])
		traces = traces[1:]
		return &tilthv1.Record{Target: "cpu", WorkloadDigest: records.Digest([]byte("conv")), Measurement: &tilthv1.Measurement{
			Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
			SamplesSeconds: []float64{0.5}, LatencySeconds: 0.5, At: timestamppb.New(time.Unix(1, 0)),
		}}, nil
	})
	if err = errors.Join(err, source.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("another trace"), []byte("Another trace")), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	if source, err = OpenFile(path, false, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	listed := 0
	err = source.List(t.Context(), "", "", func(*tilthv1.Record) error { listed++; return nil })
	if err != nil || listed != 1 || !strings.Contains(log.String(), "damaged row left out: see 'tilth records verify'") {
		t.Errorf("listed %d, %v, and said %q", listed, err, log.String())
	}
}
