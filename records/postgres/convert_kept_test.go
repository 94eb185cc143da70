package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/postgres"
)

// place is the location of a store.
type place struct{ choice, path string }

// newPlace returns a place without a store.
func newPlace(t tester, kind, folder string) place {
	t.Helper()
	dir, err := os.MkdirTemp(folder, kind)
	p := place{choice: kind, path: filepath.Join(dir, "r.db")}
	if err == nil && kind == "postgres" {
		p.choice = databases.Borrow(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tester is implemented by tests, including rapid's.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
	Cleanup(func())
}

// tryOpen opens the store for a tracker.
func (p place) tryOpen() (records.Store, error) {
	if p.choice == "bolt" {
		return bolt.Open(p.path, bolt.Options{})
	}
	return postgres.Open(p.choice, postgres.Options{})
}

// shard opens one of several shards for a tracker.
func (p place) shard(ctx context.Context, shard, shards int) (*postgres.DB, error) {
	return postgres.Await(ctx, p.choice, postgres.Options{Shard: shard, Shards: shards}, func() error { return nil })
}

func (p place) source(ctx context.Context) (records.Stopped, error) {
	if p.choice == "bolt" {
		return bolt.OpenSource(ctx, p.path)
	}
	return postgres.OpenSource(ctx, p.choice, postgres.Options{})
}

func (p place) target(ctx context.Context) (records.Target, error) {
	if p.choice == "bolt" {
		return bolt.OpenTarget(p.path)
	}
	return postgres.OpenTarget(ctx, p.choice, postgres.Options{})
}

func (p place) open(t tester) records.Store {
	t.Helper()
	s, err := p.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// use opens the store and calls do.
func (p place) use(t tester, do func(s records.Store) error) {
	t.Helper()
	s := p.open(t)
	if err := errors.Join(do(s), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func (p place) do(t tester, steps []step) {
	t.Helper()
	p.use(t, func(s records.Store) (err error) {
		for _, step := range steps {
			err = errors.Join(err, step(t.Context(), s))
		}
		return err
	})
}

func (p place) content(t tester, h *history) (lines []string) {
	t.Helper()
	p.use(t, func(s records.Store) (err error) {
		lines, err = contentOf(t.Context(), s, h)
		return err
	})
	return lines
}

// convert converts a store. wrap, unless nil, wraps source and target.
func convert(ctx context.Context, t tester, from, to place, wrap func(records.Stopped, records.Target) (records.Stopped, records.Target)) ([]records.Converted, error) {
	t.Helper()
	source, err := from.source(ctx)
	if err != nil {
		return nil, err
	}
	target, err := to.target(ctx)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	a, b := source, target
	if wrap != nil {
		a, b = wrap(source, target)
	}
	counts, err := records.Convert(ctx, a, b, func(records.Converted) {})
	return counts, errors.Join(err, target.Close(), source.Close())
}

// same fails the test unless two stores have the same content.
func same(t tester, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d is\n%s, want\n%s", i, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""))
		}
	}
}

// small is a source with small pages.
type small struct {
	records.Stopped
	rows int
}

// Page implements records.Stopped.
func (s small) Page(ctx context.Context, kind records.RowKind, after []byte) ([]records.Row, error) {
	rows, err := s.Stopped.Page(ctx, kind, after)
	return rows[:min(len(rows), s.rows)], err
}

// failing is a target that fails at one of its transactions, before or after it is stored.
type failing struct {
	records.Target
	left   *int
	stored bool
}

var errInterrupted = errors.New("interrupted")

// Put implements records.Target.
func (f failing) Put(ctx context.Context, kind records.RowKind, rows []records.Row, mark *storev1.Conversion) error {
	*f.left--
	if *f.left != 0 {
		return f.Target.Put(ctx, kind, rows, mark)
	}
	if f.stored {
		return errors.Join(errInterrupted, f.Target.Put(ctx, kind, rows, mark))
	}
	return errInterrupted
}

// convertInterrupted converts a store with repeated interruptions.
func convertInterrupted(t *rapid.T, from, to place) {
	for end := false; !end; {
		left := rapid.IntRange(1, 30).Draw(t, "transactions")
		stored, rows := rapid.Bool().Draw(t, "stored"), rapid.IntRange(1, 5).Draw(t, "rows of a page")
		_, err := convert(t.Context(), t, from, to, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
			return small{a, rows}, failing{b, &left, stored}
		})
		if err != nil && !errors.Is(err, errInterrupted) {
			t.Fatal(err)
		}
		end = err == nil
	}
}

func TestConversionKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folder, err := os.MkdirTemp("", "convert")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		kinds := []string{"bolt", "postgres"}
		if rapid.Bool().Draw(t, "from a database") {
			slices.Reverse(kinds)
		}
		from, to, back := newPlace(t, kinds[0], folder), newPlace(t, kinds[1], folder), newPlace(t, kinds[0], folder)
		h := &history{}
		from.do(t, h.Draw(t, 40))
		want := from.content(t, h)
		convertInterrupted(t, from, to)
		same(t, to.content(t, h), want)
		same(t, from.content(t, h), want)
		convertInterrupted(t, to, back)
		same(t, back.content(t, h), want)
		// Both stores behave alike from here on, including group numbers and the order of records.
		later := h.Draw(t, 15)
		for _, p := range []place{from, to, back} {
			p.do(t, later)
		}
		want = from.content(t, h)
		same(t, to.content(t, h), want)
		same(t, back.content(t, h), want)
	})
}
