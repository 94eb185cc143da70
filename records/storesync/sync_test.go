package storesync_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/storesync"
)

// newStore returns a store with a record for each second, alternating between three groups.
func newStore(t *testing.T, seconds ...int64) records.Store {
	t.Helper()
	s := storetest.Memory(t, bolt.Options{})
	for _, second := range seconds {
		storetest.Add(t, s, numbered(second))
	}
	return s
}

func numbered(second int64) *tilthv1.Record {
	return storetest.Record([]string{"cpu", "gpu"}[second%2], fmt.Sprint("w", second%4), second, 0.5)
}

func seconds(first, last int64) (all []int64) {
	for s := first; s <= last; s++ {
		all = append(all, s)
	}
	return all
}

// asked is a store that records its calls.
type asked struct {
	storesync.Store
	keys, imports int
	// fails is the number of the import that fails. stored is set if it fails after storing.
	fails  int
	stored bool
}

var errCut = errors.New("the line was cut")

func (a *asked) Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error) {
	a.keys += len(keys)
	return a.Store.Lacking(ctx, of, keys)
}

func (a *asked) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	if a.imports++; a.imports == a.fails && !a.stored {
		return 0, 0, errCut
	}
	added, there, err = a.Store.Add(ctx, batch)
	if a.imports == a.fails {
		return 0, 0, errCut
	}
	return added, there, err
}

// counts checks the numbers in a report.
func counts(t *testing.T, r *storesync.Report, sent, there uint64) {
	t.Helper()
	if r.Sent != sent || r.There != there || len(r.Refused()) > 0 {
		t.Errorf("%d sent, %d there, refused %v; want %d, %d and none", r.Sent, r.There, r.Refused(), sent, there)
	}
}

func mustSync(t *testing.T, from storesync.Source, to storesync.Destination, o storesync.Options) *storesync.Report {
	t.Helper()
	r, err := storesync.Sync(t.Context(), from, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOnlyWhatIsLackingIsSent(t *testing.T) {
	from := storesync.Store{Measurements: newStore(t, seconds(1, 100)...)}
	// The other side has some records of each kind: its own, those of an earlier exchange, and older imported ones.
	to := &asked{Store: storesync.Store{Measurements: newStore(t, append(seconds(41, 60), seconds(101, 120)...)...)}}
	counts(t, mustSync(t, from, to, storesync.Options{Dry: true}), 80, 20)
	if to.imports > 0 {
		t.Error("a dry run sent something")
	}
	counts(t, mustSync(t, from, to, storesync.Options{}), 80, 20)
	counts(t, mustSync(t, to, from, storesync.Options{}), 20, 100)
	to.keys, to.imports = 0, 0
	counts(t, mustSync(t, from, to, storesync.Options{}), 0, 120)
	if to.keys > 0 || to.imports > 0 {
		t.Errorf("of equal sides %d keys were compared, and %d batches sent", to.keys, to.imports)
	}
	if best, err := to.BestAllowed("gpu", records.Digest([]byte("w1")), ""); err != nil || string(best.GetWorkload()) != "w1" {
		t.Errorf("the workload's canonical form is %q, %v", best.GetWorkload(), err)
	}
}

func TestFilterBoundsWhatIsSent(t *testing.T) {
	from := storesync.Store{Measurements: newStore(t, seconds(1, 100)...)}
	w0, w1 := records.Digest([]byte("w0")), records.Digest([]byte("w1"))
	for name, c := range map[string]struct {
		filter storesync.Filter
		want   uint64
	}{
		"all":       {storesync.Filter{}, 100},
		"target":    {storesync.Filter{Target: "cpu"}, 50},
		"workloads": {storesync.Filter{Workloads: slices.Sorted(slices.Values([]string{w0, w1}))}, 50},
		"both":      {storesync.Filter{Target: "cpu", Workloads: []string{w0}}, 25},
		"none":      {storesync.Filter{Target: "cpu", Workloads: []string{w1}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			to := newStore(t)
			counts(t, mustSync(t, from, storesync.Store{Measurements: to}, storesync.Options{Filter: c.filter}), c.want, 0)
			r, err := storesync.SyncLines(t.Context(), lines(t, from.Measurements), storesync.Store{Measurements: newStore(t)}, storesync.Options{Filter: c.filter})
			if err != nil {
				t.Fatal(err)
			}
			counts(t, r, c.want, 0)
		})
	}
}

// lines returns the records of a store as in an export.
func lines(t *testing.T, of records.Measurements) func() (*tilthv1.Record, error) {
	t.Helper()
	var all []*tilthv1.Record
	if err := of.List(t.Context(), "", "", func(r *tilthv1.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return func() (*tilthv1.Record, error) {
		if len(all) == 0 {
			return nil, io.EOF
		}
		r := all[0]
		all = all[1:]
		return r, nil
	}
}

func TestInterruptedExchangeResumes(t *testing.T) {
	batches := storetest.QuickOr(2, 3)
	n := batches*4096 - 1000
	var all []*tilthv1.Record
	for second := range int64(n) {
		all = append(all, numbered(second))
	}
	source := storetest.Memory(t, bolt.Options{})
	w := &records.Write{}
	for _, r := range all {
		w.AddRecord(r)
	}
	if err := source.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for fails := 1; fails <= batches; fails++ {
		for _, stored := range []bool{false, true} {
			to := &asked{Store: storesync.Store{Measurements: newStore(t)}, fails: fails, stored: stored}
			if _, err := storesync.Sync(t.Context(), storesync.Store{Measurements: source}, to, storesync.Options{}); !errors.Is(err, errCut) {
				t.Fatalf("interrupted at batch %d: %v", fails, err)
			}
			there := uint64(len(list(t, to)))
			counts(t, mustSync(t, storesync.Store{Measurements: source}, to, storesync.Options{}), uint64(n)-there, there)
			if got := len(list(t, to)); got != n {
				t.Errorf("interrupted at batch %d: %d records, want %d", fails, got, n)
			}
		}
	}
}

func list(t *testing.T, of records.Measurements) (all []*tilthv1.Record) {
	t.Helper()
	if err := of.List(t.Context(), "", "", func(r *tilthv1.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// lying is a store that returns other records than requested.
type lying struct {
	storesync.Source
	change func(*tilthv1.Record)
}

func (l lying) Offer(ctx context.Context, of records.Group, lacks storesync.Lacks, take func(*tilthv1.Record) error) error {
	return l.Source.Offer(ctx, of, lacks, func(r *tilthv1.Record) error {
		if r.GetMeasurement().GetAt().GetSeconds()%5 == 0 {
			l.change(r)
		}
		return take(r)
	})
}

func TestRecordsOfAPeerAreValidatedLikeImports(t *testing.T) {
	for reason, change := range map[string]func(*tilthv1.Record){
		"workload":                              func(r *tilthv1.Record) { r.Workload = []byte("another") },
		"record":                                func(r *tilthv1.Record) { r.Target = "dsp" }, // not requested
		"measurement":                           func(r *tilthv1.Record) { r.Measurement = nil },
		"measurement.candidate.digest":          func(r *tilthv1.Record) { r.Measurement.Candidate.Trace = []byte("another") },
		"measurement.samples_seconds":           func(r *tilthv1.Record) { r.Measurement.SamplesSeconds = nil },
		"measurement.device":                    func(r *tilthv1.Record) { r.Measurement.Device = strings.Repeat("x", 1<<10) },
		"measurement.candidate.origin":          func(r *tilthv1.Record) { r.Measurement.Candidate.Origin = make([]byte, 1<<20) },
		"measurement.candidate.multiplications": func(r *tilthv1.Record) { r.Measurement.Candidate.Multiplications = 2 },
	} {
		from := lying{storesync.Store{Measurements: newStore(t, seconds(1, 20)...)}, change}
		to := newStore(t)
		r := mustSync(t, from, storesync.Store{Measurements: to}, storesync.Options{})
		refused := r.Refused()
		if r.Sent != 16 || len(list(t, to)) != 16 || len(refused) != 1 || refused[0].Reason != reason || refused[0].Records != 4 || refused[0].First == "" {
			t.Errorf("%s: %d sent, %d there, refused %v", reason, r.Sent, len(list(t, to)), refused)
		}
	}
}

func TestRecordLosesTheJobThatMadeIt(t *testing.T) {
	made := numbered(1)
	made.JobId = "job-1"
	from, to := newStore(t), newStore(t)
	storetest.Add(t, from, made)
	mustSync(t, storesync.Store{Measurements: from}, storesync.Store{Measurements: to}, storesync.Options{})
	mustSync(t, storesync.Store{Measurements: to}, storesync.Store{Measurements: from}, storesync.Options{})
	if here, there := list(t, from)[0], list(t, to)[0]; here.GetJobId() != "job-1" || there.GetJobId() != "" {
		t.Errorf("it is of job %q where it was made, of %q elsewhere", here.GetJobId(), there.GetJobId())
	}
}

// flooding is a store that sends more than requested.
type flooding struct{ storesync.Store }

func (f flooding) Offer(ctx context.Context, of records.Group, lacks storesync.Lacks, take func(*tilthv1.Record) error) error {
	return storesync.Pages{
		Keys: func(from records.Key) ([]records.Key, error) { return f.KeyPage(of, from, 1) },
		Get: func(keys []records.Key, visit func(*tilthv1.Record) error) (err error) {
			found, _, err := f.RecordsOf(of, keys, 1)
			for err == nil {
				err = visit(proto.CloneOf(found[0]))
			}
			return err
		},
	}.Offer(ctx, of, lacks, take)
}

func TestPeerThatDoesNotStopIsCutOff(t *testing.T) {
	from := flooding{storesync.Store{Measurements: newStore(t, seconds(1, 8)...)}}
	_, err := storesync.Sync(t.Context(), from, storesync.Store{Measurements: newStore(t)}, storesync.Options{})
	if !errors.Is(err, records.ErrInvalid) || !strings.Contains(err.Error(), "more records than requested") {
		t.Errorf("%v", err)
	}
}

// disordered is a store that lists its groups in an endless order.
type disordered struct{ storesync.Source }

func (d disordered) Groups(ctx context.Context, f storesync.Filter, _ string) ([]storesync.Summary, string, error) {
	page, _, err := d.Source.Groups(ctx, f, "")
	return page, page[0].Name(), err
}

func TestGroupsThatDoNotEndAreRefused(t *testing.T) {
	from := disordered{storesync.Store{Measurements: newStore(t, seconds(1, 4)...)}}
	_, err := storesync.Sync(t.Context(), from, storesync.Store{Measurements: newStore(t)}, storesync.Options{})
	if !errors.Is(err, records.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestLinesAreSentOnceInAnyOrder(t *testing.T) {
	source := newStore(t, seconds(1, 100)...)
	all := list(t, source)
	for _, r := range all { // only the first of a group has it
		r.Workload = nil
		if r.GetMeasurement().GetAt().GetSeconds() <= 4 {
			r.Workload = numbered(r.GetMeasurement().GetAt().GetSeconds()).GetWorkload()
		}
	}
	slices.SortFunc(all, func(a, b *tilthv1.Record) int {
		return int(a.GetMeasurement().GetAt().GetSeconds() - b.GetMeasurement().GetAt().GetSeconds())
	})
	bad := proto.CloneOf(all[3])
	bad.Measurement.Error = tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED
	all = append(append(all, all[10:20]...), bad)
	to := newStore(t, seconds(1, 10)...)
	r, err := storesync.SyncLines(t.Context(), func() (*tilthv1.Record, error) {
		if len(all) == 0 {
			return nil, io.EOF
		}
		next := all[0]
		all = all[1:]
		return next, nil
	}, storesync.Store{Measurements: to}, storesync.Options{})
	if err != nil || r.Sent != 90 || r.There != 10 || len(r.Refused()) != 1 || r.Refused()[0].Reason != "measurement.error" {
		t.Errorf("%d sent, %d there, refused %v, %v", r.Sent, r.There, r.Refused(), err)
	}
	if got := list(t, to); len(got) != 100 || len(got[0].GetWorkload()) == 0 {
		t.Errorf("%d records", len(got))
	}
}

// TestWorkloadsSurviveRefusedRecords is a regression test: only the first of many records has the workload's canonical
// form, which was lost if that record was refused.
func TestWorkloadsSurviveRefusedRecords(t *testing.T) {
	for name, spoil := range map[string]func(*tilthv1.Record){
		"invalid":       func(r *tilthv1.Record) { r.Measurement.SamplesSeconds = nil },
		"beyond bounds": func(r *tilthv1.Record) { r.Measurement.Device = strings.Repeat("x", 1<<10) },
	} {
		source := newStore(t)
		for n := range int64(36) { // misreported seconds, nine in each of four groups
			storetest.Add(t, source, numbered(5*n))
		}
		sides := map[string]func(to storesync.Destination) (*storesync.Report, error){
			"a store": func(to storesync.Destination) (*storesync.Report, error) {
				return storesync.Sync(t.Context(), lying{storesync.Store{Measurements: source}, spoilFirst(spoil)}, to, storesync.Options{})
			},
			"lines": func(to storesync.Destination) (*storesync.Report, error) {
				next, spoil := lines(t, source), spoilFirst(spoil)
				return storesync.SyncLines(t.Context(), func() (*tilthv1.Record, error) {
					r, err := next()
					if err == nil {
						r = proto.CloneOf(r)
						spoil(r)
					}
					return r, err
				}, to, storesync.Options{})
			},
		}
		for from, sync := range sides {
			to := newStore(t)
			r, err := sync(storesync.Store{Measurements: to})
			if refused := r.Refused(); err != nil || len(refused) != 1 || refused[0].Records != 4 || r.Sent != 32 {
				t.Errorf("%s from %s: %d sent, refused %v, %v", name, from, r.Sent, refused, err)
			}
			for n := range int64(4) {
				want := numbered(n)
				best, err := to.BestAllowed(want.GetTarget(), want.GetWorkloadDigest(), "")
				if err != nil || string(best.GetWorkload()) != string(want.GetWorkload()) {
					t.Errorf("%s from %s: the canonical form of %s is %q, %v", name, from, want.GetWorkload(), best.GetWorkload(), err)
				}
			}
		}
	}
}

// spoilFirst spoils records that have their workload's canonical form.
func spoilFirst(spoil func(*tilthv1.Record)) func(*tilthv1.Record) {
	return func(r *tilthv1.Record) {
		if len(r.GetWorkload()) > 0 {
			spoil(r)
		}
	}
}
