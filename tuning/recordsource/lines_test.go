package recordsource

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/exchange"
	"github.com/tilth-dev/tilth/records/static"
)

func measured(second int64) *tilthv1.Record {
	trace := fmt.Appendf(nil, "trace %d", second)
	return &tilthv1.Record{Target: "cpu", WorkloadDigest: records.Digest([]byte("conv")), Workload: []byte("conv"), Measurement: &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		SamplesSeconds: []float64{0.5}, LatencySeconds: 0.5, At: timestamppb.New(time.Unix(second, 0)),
	}}
}

func TestAnExportIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	for _, name := range []string{"all.jsonl", "all.jsonl.gz"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for second := range int64(3) {
			for _, written := range []bool{false, true} { // the first time it is interrupted
				lines, err := OpenLines(t.Context(), path, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = lines.Add(t.Context(), []*tilthv1.Record{measured(second)})
				if err == nil && written {
					err = lines.Write(t.Context(), func(why error) { t.Error(why) })
				}
				if err = errors.Join(err, lines.Close()); err != nil {
					t.Fatal(err)
				}
				if n, want := count(t, path), second+map[bool]int64{true: 1}[written]; n != want {
					t.Errorf("%s has %d records, want %d", name, n, want)
				}
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%d files are left, %v", len(entries), err)
		}
	}
}

// count is how many records an export has; 0 when it is not there.
func count(t *testing.T, path string) (n int64) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	to := exchange.Options{Dry: true}
	err := ReadLines(path, func(next func() (*tilthv1.Record, error)) error {
		r, err := exchange.SyncLines(t.Context(), next, exchange.Nothing{}, to)
		n = int64(r.Sent)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestADamagedExportIsNotAddedTo(t *testing.T) {
	for name, text := range map[string]string{"a.jsonl": "hello\n", "b.jsonl.gz": "hello\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenLines(t.Context(), path, slog.New(slog.DiscardHandler))
		if !errors.Is(err, records.ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("%s is now %q, %v", name, left, err)
		}
	}
}

func TestAFolderIsNamedInManyWays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "two words")
	if _, err := static.Write(dir, static.Source{
		List: func(visit func(*tilthv1.Record) error) error { return visit(measured(1)) },
		Best: func(records.Group, string) (*tilthv1.Record, error) { return nil, nil },
	}); err != nil {
		t.Fatal(err)
	}
	escaped := strings.ReplaceAll(dir, " ", "%20")
	for where, good := range map[string]bool{
		dir: true, "file://" + escaped: true, "file:" + escaped: true, "file://localhost" + escaped + "/index.json": true,
		"file://elsewhere" + escaped: false, "file:two": false,
	} {
		source, err := OpenStatic(t.Context(), where, static.ServerOptions{})
		if (err == nil) != good || !IsStatic(where) {
			t.Errorf("%s: %v", where, err)
		}
		if good {
			if err := source.List(t.Context(), "", "", func(*tilthv1.Record) error { return nil }); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	for _, where := range []string{"", "mine.db", "tracker:host:1", filepath.Join(dir, "index.json")} {
		if IsStatic(where) {
			t.Errorf("%q is taken for a folder", where)
		}
	}
}
