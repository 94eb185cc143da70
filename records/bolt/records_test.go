package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// TestMain lets this binary act as a process that is killed.
func TestMain(m *testing.M) {
	for name, process := range map[string]func(path string){compactProcessEnv: compactProcess, fillProcessEnv: fillProcess, importProcessEnv: importProcess, renameProcessEnv: renameProcess,
		tornProcessEnv: tornProcess, bolt.AddressesProcessEnv: bolt.AddressesProcess} {
		if path := os.Getenv(name); path != "" {
			process(path)
			return
		}
	}
	goleak.VerifyTestMain(m)
}

func openDB(t *testing.T, path string) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{LockTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestBestIsTheFastestVerifiedRecordOfItsTargetAndWorkload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	db := openDB(t, path)
	storetest.Add(t, db,
		storetest.Record("cpu", "conv", 1, 0.3), storetest.Record("cpu", "conv", 2, 0.1), storetest.Record("cpu", "conv", 3, 0.2),
		storetest.Record("cpu", "conv", 4, 0), storetest.Record("cpu", "pool", 5, 0.7), storetest.Record("gpu", "conv", 6, 0.01),
		storetest.Record("cpu", "softmax", 7, 0))
	check := func(db *bolt.DB) {
		t.Helper()
		best, err := db.BestAllowed("cpu", records.Digest([]byte("conv")), "")
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(best, storetest.Record("cpu", "conv", 2, 0.1)) {
			t.Errorf("best is %v", best)
		}
		if _, err := db.BestAllowed("cpu", records.Digest([]byte("softmax")), ""); !errors.Is(err, records.ErrNotFound) {
			t.Errorf("best of a workload that only failed: %v", err)
		}
		for target, want := range map[string]int{"cpu": 2, "gpu": 1, "": 3, "cp": 0} {
			if all, _, err := db.BestPage(target, "", math.MaxInt, math.MaxInt); err != nil || len(all) != want {
				t.Errorf("BestPage(%q) = %d records, %v, want %d", target, len(all), err, want)
			}
		}
	}
	check(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := bolt.OpenReadOnly(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	check(reader)
	if err := reader.Commit(&records.Write{}).Wait(t.Context()); !errors.Is(err, records.ErrClosed) {
		t.Errorf("commit to a file opened for reading: %v", err)
	}
}

func exportAll(t *testing.T, db *bolt.DB, w io.Writer) (uint64, error) {
	list := func(visit func(*tilthv1.Record) error) error { return db.List(t.Context(), "", "", visit) }
	return records.Export(w, list, func(why error) { t.Error(why) })
}

func TestExportAndImport(t *testing.T) {
	dir := t.TempDir()
	from := openDB(t, filepath.Join(dir, "from.db"))
	storetest.Add(t, from, storetest.Record("cpu", "conv", 1, 0.3), storetest.Record("cpu", "conv", 2, 0), storetest.Record("gpu", "pool", 3, 0.5))
	var file bytes.Buffer
	if n, err := exportAll(t, from, &file); n != 3 || err != nil {
		t.Fatalf("exported %d, %v", n, err)
	}
	to := openDB(t, filepath.Join(dir, "to.db"))
	storetest.Add(t, to, storetest.Record("cpu", "conv", 1, 0.3))
	for _, want := range [][2]uint64{{2, 1}, {0, 3}} {
		imported, skipped, err := importBytes(t, to, file.Bytes())
		if err != nil || imported != want[0] || skipped != want[1] {
			t.Errorf("imported %d, skipped %d, %v, want %v", imported, skipped, err, want)
		}
	}
	a, b := storetest.List(t, from, "", ""), storetest.List(t, to, "", "")
	if len(a) != len(b) {
		t.Fatalf("%d records became %d", len(a), len(b))
	}
	for i := range a {
		if !proto.Equal(a[i], b[i]) {
			t.Errorf("record %d: %v became %v", i, a[i], b[i])
		}
	}
}

func importBytes(t *testing.T, db *bolt.DB, file []byte) (imported, skipped uint64, err error) {
	t.Helper()
	r, err := records.NewReader(bytes.NewReader(file))
	if err != nil {
		return 0, 0, err
	}
	return db.Import(t.Context(), r.Read)
}

func TestImportRefusesWhatIsNotAWholeExport(t *testing.T) {
	dir := t.TempDir()
	from := openDB(t, filepath.Join(dir, "from.db"))
	storetest.Add(t, from, storetest.Record("cpu", "conv", 1, 0.3), storetest.Record("cpu", "conv", 2, 0.2))
	var file bytes.Buffer
	if _, err := exportAll(t, from, &file); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(file.String(), "\n"), "\n")
	whole := file.String()
	cases := map[string]struct {
		file string
		want error
		text string
	}{
		"empty":              {"", records.ErrDamaged, "it is empty"},
		"not an export":      {"{\"a\":1}\n", records.ErrDamaged, "not the header"},
		"binary":             {"\x00\x01\x02", records.ErrDamaged, "not the header"},
		"foreign version":    {strings.Replace(whole, `"version":1`, `"version":7`, 1), records.ErrVersion, "export format 7"},
		"last line missing":  {strings.Join(lines[:3], ""), records.ErrDamaged, "cut short after line 3"},
		"cut within a line":  {whole[:len(lines[0])+len(lines[1])/2], records.ErrDamaged, "line 2"},
		"a line missing":     {lines[0] + lines[1] + lines[3], records.ErrDamaged, "1 records, the last line says 2"},
		"lines after end":    {whole + lines[1], records.ErrDamaged, "lines after the end"},
		"wrong trace digest": {strings.Replace(whole, `"trace":"`, `"trace":"AAAA`, 1), records.ErrInvalid, "line 2: invalid record: measurement.candidate.digest"},
		"endless target":     {strings.Replace(whole, `"target":"cpu"`, `"target":"`+strings.Repeat("c", 40000)+`"`, 1), records.ErrInvalid, "line 2: invalid record: target has 40000 bytes"},
		"negative latency":   {strings.ReplaceAll(whole, `0.2`, `-0.2`), records.ErrInvalid, "line 3: invalid record: measurement has a latency of -0.2 s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			to := openDB(t, filepath.Join(t.TempDir(), "to.db"))
			_, _, err := importBytes(t, to, []byte(c.file))
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
			if got := storetest.List(t, to, "", ""); len(got) > 0 {
				t.Errorf("%d records were imported all the same", len(got))
			}
		})
	}
}

func TestOpenRefusesForeignAndDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	db := openDB(t, good)
	w := &records.Write{}
	for i := range int64(2000) {
		w.AddRecord(storetest.Record("cpu", "conv", i, 1))
	}
	if err := errors.Join(db.Commit(w).Wait(t.Context()), db.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		make func(path string) error
		want error
		text string
	}{
		"another version": {func(p string) error {
			return errors.Join(os.WriteFile(p, whole, 0o644), setVersion(p, []byte{0, 0, 0, 9}))
		}, records.ErrVersion, "schema 9, this one reads 3: export it"},
		"a bolt file of someone else": {func(p string) error {
			other, err := bbolt.Open(p, 0o644, nil)
			if err != nil {
				return err
			}
			return other.Close()
		}, records.ErrDamaged, "no version"},
		"empty":       {func(p string) error { return os.WriteFile(p, nil, 0o644) }, records.ErrDamaged, "restore a backup"},
		"text":        {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("hello ", 9999)), 0o644) }, records.ErrDamaged, "restore a backup"},
		"cut short":   {func(p string) error { return os.WriteFile(p, whole[:len(whole)/3], 0o644) }, records.ErrDamaged, "cut short"},
		"one page":    {func(p string) error { return os.WriteFile(p, whole[:4096], 0o644) }, records.ErrDamaged, "cut short"},
		"overwritten": {func(p string) error { return os.WriteFile(p, overwritten(whole), 0o644) }, records.ErrDamaged, "restore a backup"},
		"a directory": {func(p string) error { return os.Mkdir(p, 0o755) }, records.ErrDamaged, "not a regular file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.db")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			_, writing := bolt.Open(path, bolt.Options{})
			_, reading := bolt.OpenReadOnly(path, bolt.Options{})
			for _, err := range []error{writing, reading} {
				if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) || !strings.Contains(fmt.Sprint(err), path) {
					t.Errorf("got %v, want %v with %q", err, c.want, c.text)
				}
			}
		})
	}
	if _, err := bolt.OpenReadOnly(filepath.Join(dir, "none.db"), bolt.Options{}); !errors.Is(err, records.ErrMissing) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// overwritten overwrites everything except the two meta pages.
func overwritten(whole []byte) []byte {
	spoilt := bytes.Repeat([]byte{0xA5}, len(whole))
	copy(spoilt, whole[:2*os.Getpagesize()])
	return spoilt
}

func setVersion(path string, version []byte) error {
	b, err := bbolt.Open(path, 0o644, nil)
	if err != nil {
		return err
	}
	return errors.Join(b.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("version"), version)
	}), b.Close())
}

func TestOneWriterAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	openDB(t, path)
	opts := bolt.Options{LockTimeout: time.Millisecond}
	for name, open := range map[string]func(string, bolt.Options) (*bolt.DB, error){
		"writer": bolt.Open, "reader": bolt.OpenReadOnly,
	} {
		if _, err := open(path, opts); !errors.Is(err, records.ErrLocked) {
			t.Errorf("second %s: %v", name, err)
		}
	}
}

func TestCommitsGatherInOneTransaction(t *testing.T) {
	transactions := make(chan int, 1000)
	db, err := bolt.Open(filepath.Join(t.TempDir(), "r.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db.Observe(func(tx records.Transaction) {
		if tx.Sync <= 0 || tx.Sync > tx.Took {
			t.Errorf("a transaction of %v waited for the disk for %v", tx.Took, tx.Sync)
		}
		transactions <- tx.Commits
	})
	const n = 500
	var pending []*records.Pending
	for i := range int64(n) {
		w := &records.Write{}
		w.AddRecord(storetest.Record("cpu", "conv", i, 1))
		pending = append(pending, db.Commit(w))
	}
	for _, p := range pending {
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	close(transactions)
	count, commits := 0, 0
	for c := range transactions {
		count++
		commits += c
	}
	if commits != n || count >= n/2 {
		t.Errorf("%d commits took %d transactions, want %d in far fewer", commits, count, n)
	}
}

func TestFullDiskFailsEveryLaterCommitToo(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "r.db"), bolt.Options{MaxSizeBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	big := storetest.Record("cpu", "conv", 1, 1)
	big.Measurement.Candidate.Origin = make([]byte, 1<<20)
	w := &records.Write{}
	w.AddRecord(big)
	first := db.Commit(w).Wait(t.Context())
	if first == nil {
		t.Fatal("a commit beyond the limit succeeded")
	}
	small := &records.Write{}
	small.AddRecord(storetest.Record("cpu", "conv", 2, 1))
	if err := db.Commit(small).Wait(t.Context()); !errors.Is(err, first) {
		t.Errorf("the next commit: %v, want %v", err, first)
	}
	if got := storetest.List(t, db, "", ""); len(got) != 0 {
		t.Errorf("%d records in the store, want none", len(got))
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	db := openDB(t, filepath.Join(t.TempDir(), "r.db"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hold := make(chan struct{})
	w := &records.Write{}
	w.OnCommitted(func() { <-hold })
	db.Commit(w)
	if err := db.Commit(&records.Write{}).Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(hold)
}
