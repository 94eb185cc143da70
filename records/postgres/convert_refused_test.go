package postgres_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// both runs a test for a conversion from a file to a database and back.
func both(t *testing.T, test func(t *testing.T, from, to place)) {
	for _, kinds := range [][]string{{"bolt", "postgres"}, {"postgres", "bolt"}} {
		t.Run("from "+kinds[0], func(t *testing.T) {
			from, to := newPlace(t, kinds[0], t.TempDir()), newPlace(t, kinds[1], t.TempDir())
			from.add(t, 1, 2, 3)
			test(t, from, to)
		})
	}
}

// add adds a record for each second.
func (p place) add(t *testing.T, seconds ...int64) {
	t.Helper()
	p.use(t, func(s records.Store) error {
		w := &records.Write{}
		for _, second := range seconds {
			w.AddRecord(storetest.Record("cpu", "conv", second, 0.5))
		}
		return s.Commit(w).Wait(t.Context())
	})
}

// part performs a part of a conversion.
func part(t *testing.T, from, to place) {
	t.Helper()
	left := 3
	_, err := convert(t.Context(), t, from, to, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
		return small{a, 1}, failing{b, &left, true}
	})
	if !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
}

// refuses checks that an error wraps want, has one line, and contains the texts.
func refuses(t *testing.T, err, want error, texts ...string) {
	t.Helper()
	if want != nil && !errors.Is(err, want) || err == nil {
		t.Fatalf("the error is %v, want %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %q, want %q", err, text)
		}
	}
}

// sort returns the kind of store for newPlace.
func (p place) sort() string {
	if p.choice == "bolt" {
		return p.choice
	}
	return "postgres"
}

// emptying returns the error's instruction for emptying a target.
func (p place) emptying() string {
	if p.choice == "bolt" {
		return "move that file away"
	}
	return "DROP SCHEMA tilth CASCADE"
}

func TestNoTrackerOpensAPartOfAConversion(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		part(t, from, to)
		_, err := to.tryOpen()
		refuses(t, err, records.ErrUnfinished, "run 'tilth tracker convert' again")
		if to.sort() == "postgres" { // a database cannot continue with shards that a tracker created
			_, err := postgres.Open(to.choice, postgres.Options{Shards: 4})
			refuses(t, err, records.ErrUnfinished, "run 'tilth tracker convert' again")
		}
		_, err = to.source(t.Context())
		refuses(t, err, records.ErrUnfinished)
		if _, err := convert(t.Context(), t, from, to, nil); err != nil {
			t.Fatal(err)
		}
		h := &history{}
		same(t, to.content(t, h), from.content(t, h))
	})
}

func TestConvertRefusesATargetWithOtherData(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		to.add(t, 9)
		_, err := convert(t.Context(), t, from, to, nil)
		refuses(t, err, records.ErrNotEmpty, "it has workloads", to.emptying())
		other, half := newPlace(t, from.sort(), t.TempDir()), newPlace(t, to.sort(), t.TempDir())
		other.add(t, 4, 5, 6)
		part(t, other, half)
		_, err = convert(t.Context(), t, from, half, nil)
		refuses(t, err, records.ErrNotEmpty, "it has a part of", half.emptying())
	})
}

func TestSourceThatChangedBetweenTwoRunsIsRefused(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		part(t, from, to)
		from.add(t, 4)
		_, err := convert(t.Context(), t, from, to, nil)
		refuses(t, err, records.ErrNotEmpty, "changed since", to.emptying())
	})
}

func TestConversionThatHasEndedIsComparedAgain(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		first, err := convert(t.Context(), t, from, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := convert(t.Context(), t, from, to, nil)
		if err != nil || len(again) != len(first) {
			t.Fatalf("%v, %v; want %v", again, err, first)
		}
		for i := range again {
			if again[i] != first[i] || again[i].Kind == records.RowRecord && again[i].Rows != 3 {
				t.Errorf("%v, want %v", again[i], first[i])
			}
		}
		to.add(t) // opened by a tracker
		_, err = convert(t.Context(), t, from, to, nil)
		refuses(t, err, records.ErrNotEmpty)
	})
}

func TestConversionOfAStoreThatATrackerHasIsRefused(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		t.Parallel() // mostly waits for locks
		for _, held := range []place{from, to} {
			s := held.open(t)
			_, err := convert(t.Context(), t, from, to, nil)
			refuses(t, err, records.ErrLocked, "stop the tracker first")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		left := 2
		_, err := convert(t.Context(), t, from, to, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
			for _, held := range []place{from, to} {
				_, err := held.tryOpen()
				refuses(t, err, records.ErrLocked)
			}
			return a, failing{b, &left, false}
		})
		refuses(t, err, errInterrupted)
	})
}

// meddling is a target that changes a copied row.
type meddling struct {
	records.Target
	change func(kind records.RowKind, rows []records.Row) []records.Row
}

// Put implements records.Target.
func (m meddling) Put(ctx context.Context, kind records.RowKind, rows []records.Row, mark *storev1.Conversion) error {
	return m.Target.Put(ctx, kind, m.change(kind, rows), mark)
}

func TestTargetThatDiffersIsFound(t *testing.T) {
	for want, change := range map[string]func([]records.Row) []records.Row{
		"is missing": func(rows []records.Row) []records.Row { return rows[1:] },
		"is another": func(rows []records.Row) []records.Row {
			return append([]records.Row{{Key: rows[0].Key, Value: rows[1].Value}}, rows[1:]...)
		},
		"is not in the source": func(rows []records.Row) []records.Row {
			key := append([]byte(nil), rows[0].Key...)
			key[len(key)-1]++
			return append(rows, records.Row{Key: key, Value: rows[0].Value})
		},
	} {
		both(t, func(t *testing.T, from, to place) {
			_, err := convert(t.Context(), t, from, to, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
				return a, meddling{b, func(kind records.RowKind, rows []records.Row) []records.Row {
					if kind == records.RowRecord {
						return change(rows)
					}
					return rows
				}}
			})
			refuses(t, err, records.ErrDiffers, "among the records", want, to.emptying())
			_, err = to.tryOpen()
			refuses(t, err, records.ErrUnfinished)
		})
	}
}

// growing is a source that is written during reading.
type growing struct {
	records.Stopped
	states int
}

// State implements records.Stopped.
func (g *growing) State(ctx context.Context) (string, error) {
	g.states++
	state, err := g.Stopped.State(ctx)
	return state + strings.Repeat("+", g.states), err
}

func TestSourceThatIsWrittenMeanwhileIsFound(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		_, err := convert(t.Context(), t, from, to, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
			return &growing{Stopped: a}, b
		})
		refuses(t, err, records.ErrDiffers, "the source changed")
	})
}

func TestConversionLeavesTheSourceAsItWas(t *testing.T) {
	from, to := newPlace(t, "bolt", t.TempDir()), newPlace(t, "postgres", t.TempDir())
	from.add(t, 1, 2, 3)
	before, err := os.ReadFile(from.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := convert(t.Context(), t, from, to, nil); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(from.path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}
}

func TestDamagedSourceIsNotConverted(t *testing.T) {
	from, to := newPlace(t, "bolt", t.TempDir()), newPlace(t, "postgres", t.TempDir())
	from.add(t, 1, 2, 3)
	file, err := os.ReadFile(from.path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(file), "board-1") // in a measurement
	file[at] ^= 1
	if err := os.WriteFile(from.path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = convert(t.Context(), t, from, to, nil)
	refuses(t, err, records.ErrDamaged, "tilth records compact")
	to.add(t, 1) // no conversion was begun
}

func TestConvertRefusesWhatIsNoStore(t *testing.T) {
	address, err := server.Database()
	if err != nil {
		t.Fatal(err)
	}
	empty, to := place{choice: address}, newPlace(t, "bolt", t.TempDir())
	_, err = convert(t.Context(), t, empty, to, nil)
	refuses(t, err, nil, "it has no records of Tilth")
	if _, err := os.Stat(to.path); err == nil {
		t.Error("a file was made")
	}
	_, err = convert(t.Context(), t, to, empty, nil)
	refuses(t, err, records.ErrMissing, "name the tracker's folder with --data")
	garbage := place{"bolt", filepath.Join(t.TempDir(), "r.db")}
	if err := os.WriteFile(garbage.path, []byte(strings.Repeat("garbage ", 9999)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = convert(t.Context(), t, garbage, empty, nil)
	refuses(t, err, records.ErrDamaged)
	empty.add(t, 1)
	_, err = convert(t.Context(), t, empty, garbage, nil)
	refuses(t, err, records.ErrDamaged)
}

func TestInterruptedImportIsConverted(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		target, err := from.target(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		number := []byte{0, 0, 0, 0, 0, 0, 0, 7}
		done := &storev1.Conversion{Finished: true}
		chunks := 0
		err = records.Collect(t.Context(), storetest.Numbered(1200, io.EOF), func(chunk []byte) error {
			key := append(append([]byte(nil), number...), 0, 0, 0, 0, 0, 0, 0, byte(chunks))
			chunks++
			return target.Put(t.Context(), records.RowChunk, []records.Row{{Key: key, Value: chunk}}, done)
		})
		err = errors.Join(err, target.Put(t.Context(), records.RowImport, []records.Row{{Key: number}}, done), target.Close())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := convert(t.Context(), t, from, to, nil); err != nil {
			t.Fatal(err)
		}
		h := &history{}
		got := to.content(t, h)
		same(t, got, from.content(t, h))
		if !strings.Contains(strings.Join(got, ""), "seconds:1201") {
			t.Error("the import is not there")
		}
	})
}

// TestDatabaseOfAnEarlierVersionIsNotConverted until a tracker of this version has migrated it.
func TestDatabaseOfAnEarlierVersionIsNotConverted(t *testing.T) {
	from := newPlace(t, "postgres", "")
	from.add(t, 1)
	_, err := postgres.OpenSource(t.Context(), from.choice, newer(postgres.Options{}))
	refuses(t, err, records.ErrVersion, "start a tracker of this version on it")
	db, err := postgres.Open(from.choice, newer(postgres.Options{}))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.OpenSource(t.Context(), from.choice, newer(postgres.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestTrackerThatWasCutOffWritesNothingAfterAConversion converts the database after a tracker has lost it.
func TestTrackerThatWasCutOffWritesNothingAfterAConversion(t *testing.T) {
	from, to := newPlace(t, "postgres", ""), newPlace(t, "bolt", t.TempDir())
	s, err := postgres.Open(from.choice, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Add(t, s, storetest.Record("cpu", "conv", 1, 0.5))
	// The tracker's connections fail until the conversion has the lock.
	for converted := false; !converted; {
		if err := server.Do(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname LIKE 'd%'"); err != nil {
			t.Fatal(err)
		}
		_, err := convert(t.Context(), t, from, to, nil)
		if converted = err == nil; !converted && !errors.Is(err, records.ErrLocked) {
			t.Fatal(err)
		}
	}
	w := &records.Write{}
	w.AddRecord(storetest.Record("cpu", "conv", 2, 0.5))
	if err := s.Commit(w).Wait(t.Context()); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("it wrote: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestDatabaseOfALaterVersionIsNotConverted because an older but compatible version would omit unknown data.
func TestDatabaseOfALaterVersionIsNotConverted(t *testing.T) {
	for _, into := range []bool{false, true} {
		from, to := newPlace(t, "postgres", ""), newPlace(t, "bolt", t.TempDir())
		from.add(t, 1)
		conn, err := pgx.Connect(t.Context(), from.choice)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), "INSERT INTO tilth.migrations (version, usable_by) SELECT max(version) + 1, max(version) FROM tilth.migrations")
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		from.add(t, 2) // this version may use it
		if into {
			from, to = newPlace(t, "bolt", t.TempDir()), from
			from.add(t, 1)
		}
		_, err = convert(t.Context(), t, from, to, nil)
		refuses(t, err, records.ErrVersion, "convert with the version of its trackers")
	}
}
