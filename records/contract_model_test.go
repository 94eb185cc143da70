package records_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// model is a naive reference implementation.
type model struct {
	groups map[string]*modelGroup // by workload
}

// modelGroup holds a workload's records by time, and the best at each level.
type modelGroup struct {
	records []*tilthv1.Record
	best    [3]*tilthv1.Record
}

var levels = []string{"strict", "default", "fast"}

func (g *modelGroup) add(r *tilthv1.Record) {
	at := func(r *tilthv1.Record) int64 { return r.GetMeasurement().GetAt().GetSeconds() }
	place, there := slices.BinarySearchFunc(g.records, r, func(a, b *tilthv1.Record) int { return int(at(a) - at(b)) })
	if there {
		return
	}
	g.records = slices.Insert(g.records, place, r)
	if r.GetMeasurement().GetLatencySeconds() > 0 {
		g.offer(r)
		return
	}
	for _, best := range g.best {
		if records.Disqualifies(r.GetMeasurement()) && best != nil && digestOf(best) == digestOf(r) {
			g.again()
			return
		}
	}
}

func digestOf(r *tilthv1.Record) string { return r.GetMeasurement().GetCandidate().GetDigest() }

func (g *modelGroup) offer(r *tilthv1.Record) {
	needs := slices.Index(levels, r.GetMeasurement().GetCandidate().GetNumerics())
	for level := needs; level < len(g.best); level++ {
		if g.best[level] == nil || records.Supersedes(r.GetMeasurement(), g.best[level].GetMeasurement()) {
			g.best[level] = r
		}
	}
}

func (g *modelGroup) again() {
	refuted := map[string]bool{}
	for _, r := range g.records {
		refuted[digestOf(r)] = refuted[digestOf(r)] || records.Disqualifies(r.GetMeasurement())
	}
	g.best = [3]*tilthv1.Record{}
	for _, r := range g.records {
		if r.GetMeasurement().GetLatencySeconds() > 0 && !refuted[digestOf(r)] {
			g.offer(r)
		}
	}
}

// theStoreSaysWhatAModelOfItSays adds records in random order, with repetitions and in random groups, and reopens the
// store.
func theStoreSaysWhatAModelOfItSays(t *testing.T, k storeKind) {
	rapid.Check(t, func(t *rapid.T) {
		dir := k.folder(t)
		db := k.opened(t, dir)
		m := &model{groups: map[string]*modelGroup{"conv": {}, "pool": {}}}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				w := &records.Write{}
				for range rapid.IntRange(1, 4).Draw(t, "records") {
					r := drawRecord(t)
					m.groups[string(r.GetWorkload())].add(r)
					w.AddRecord(r)
				}
				if err := db.Commit(w).Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			"reopen": func(t *rapid.T) {
				db = k.reopened(t, db, dir)
			},
			"": func(t *rapid.T) { m.check(t, db) },
		})
	})
}

// drawRecord draws one of few candidates at one of few times.
func drawRecord(t *rapid.T) *tilthv1.Record {
	second := rapid.Int64Range(1, 30).Draw(t, "second")
	r := storetest.Record("cpu", rapid.SampledFrom([]string{"conv", "pool"}).Draw(t, "workload"), second, float64(rapid.IntRange(0, 5).Draw(t, "latency")))
	// Each time belongs to one candidate, since a device measures one at a time.
	trace := fmt.Appendf(nil, "candidate %d", second%4)
	c := r.Measurement.Candidate
	c.Trace, c.Digest, c.Numerics = trace, records.Digest(trace), levels[second%3]
	return r
}

func (m *model) check(t *rapid.T, db records.Store) {
	for _, workload := range []string{"conv", "pool"} {
		g := m.groups[workload]
		for level, name := range levels {
			got, err := db.BestAllowed("cpu", records.Digest([]byte(workload)), name)
			if err != nil && !errors.Is(err, records.ErrNotFound) {
				t.Fatal(err)
			}
			if identity(got) != identity(g.best[level]) && (got != nil || g.best[level] != nil) {
				t.Fatalf("the best of %s at %s is %v, want %v", workload, name, got, g.best[level])
			}
		}
		var got, want []string
		err := db.List(t.Context(), "cpu", records.Digest([]byte(workload)), func(r *tilthv1.Record) error {
			got = append(got, identity(r))
			return nil
		})
		for _, r := range g.records {
			want = append(want, identity(r))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s has %v, %v; want %v", workload, got, err, want)
		}
		known, err := db.Known("cpu", records.Digest([]byte(workload)), "", "", 1<<30)
		if err != nil || known.Trials != len(g.records) {
			t.Fatalf("%s is known by %+v, %v; want %d trials", workload, known, err, len(g.records))
		}
	}
}
