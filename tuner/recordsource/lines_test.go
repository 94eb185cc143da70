package recordsource

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/filesystem"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/staticsite"
	"github.com/tilth-dev/tilth/records/storesync"
)

func measured(second int64) *tilthv1.Record {
	trace := fmt.Appendf(nil, "trace %d", second)
	return &tilthv1.Record{Target: "cpu", WorkloadDigest: records.Digest([]byte("conv")), Workload: []byte("conv"), Measurement: &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
		SamplesSeconds: []float64{0.5}, LatencySeconds: 0.5, At: timestamppb.New(time.Unix(second, 0)),
	}}
}

func TestExportIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	for _, name := range []string{"all.jsonl", "all.jsonl.gz"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for second := range int64(3) {
			for _, written := range []bool{false, true} { // the first write is interrupted
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

// count returns the number of records in an export, or 0 if it does not exist.
func count(t *testing.T, path string) (n int64) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	to := storesync.Options{Dry: true}
	err := ReadLines(path, nil, func(next func() (*tilthv1.Record, error)) error {
		r, err := storesync.SyncLines(t.Context(), next, storesync.EmptySide{}, to)
		n = int64(r.Sent)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func openLines(t *testing.T, path string) *Lines {
	t.Helper()
	lines, err := OpenLines(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// add adds records to an export and saves it.
func add(t *testing.T, path string, all ...*tilthv1.Record) {
	t.Helper()
	lines := openLines(t, path)
	_, _, err := lines.Add(t.Context(), all)
	if err == nil {
		err = lines.Write(t.Context(), func(why error) { t.Error(why) })
	}
	if err := errors.Join(err, lines.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOneProcessAtATimeAddsToAnExport is a regression test: of two concurrent processes, the last one discarded the
// records of the other.
func TestOneProcessAtATimeAddsToAnExport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.jsonl")
	first := openLines(t, path)
	_, err := OpenLines(t.Context(), path, slog.New(slog.DiscardHandler))
	if !errors.Is(err, filesystem.ErrLocked) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("a second one meanwhile: %v", err)
	}
	_, _, err = first.Add(t.Context(), []*tilthv1.Record{measured(1)})
	if err = errors.Join(err, first.Write(t.Context(), func(why error) { t.Error(why) }), first.Close()); err != nil {
		t.Fatal(err)
	}
	add(t, path, measured(2))
	if n := count(t, path); n != 2 {
		t.Errorf("there are %d records, want 2", n)
	}
}

func TestExportThatHasAllIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.jsonl")
	add(t, path)
	if n := count(t, path); n != 0 {
		t.Errorf("a new export has %d records", n)
	}
	add(t, path, measured(1))
	was, err := os.Open(path) // keeps its inode number in use
	if err != nil {
		t.Fatal(err)
	}
	defer was.Close()
	replaced := func() bool {
		before, err := was.Stat()
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return !os.SameFile(before, after)
	}
	add(t, path)
	add(t, path, measured(1))
	if replaced() {
		t.Error("it was replaced")
	}
	add(t, path, measured(2))
	if !replaced() {
		t.Error("it was not replaced for a record that it lacks")
	}
}

// TestRecordsOfAnExportStayAsTheyAre is a regression test: existing records lost the job that created them, as if
// imported.
func TestRecordsOfAnExportStayAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.jsonl")
	made := measured(1)
	made.JobId = "job-00000001-abcdef"
	var text bytes.Buffer
	if _, err := records.Export(&text, func(visit func(*tilthv1.Record) error) error { return visit(made) }, func(why error) { t.Error(why) }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	other := measured(2)
	other.JobId = "job-elsewhere"
	add(t, path, other)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Split(text.Bytes(), []byte("\n"))[1]
	if !bytes.Contains(after, append(line, '\n')) {
		t.Errorf("%s\nlacks %s", after, line)
	}
	if bytes.Contains(after, []byte("elsewhere")) || count(t, path) != 2 {
		t.Errorf("a record that was added keeps its job: %s", after)
	}
}

// TestFilesOfKilledExportsAreRemoved is a regression test: temporary files of killed processes stayed forever.
func TestFilesOfKilledExportsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "all.jsonl")
	killed := openLines(t, path)
	if _, _, err := killed.Add(t.Context(), []*tilthv1.Record{measured(1)}); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(t.TempDir(), "left")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(left, "all.jsonl")
	add(t, path, measured(2))
	if entries, err := os.ReadDir(left); err != nil || len(entries) != 1 || count(t, path) != 1 {
		t.Errorf("%v are there, %v, with %d records", entries, err, count(t, path))
	}
}

func TestDamagedExportIsNotAddedTo(t *testing.T) {
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

func TestFolderIsNamedInManyWays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "two words")
	if _, err := staticsite.Write(dir, staticsite.Source{
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
		source, err := OpenStatic(t.Context(), where, nil, staticsite.ServerOptions{})
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
