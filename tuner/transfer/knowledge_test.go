package transfer

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func machine(t testing.TB, threads int) *target.Target {
	t.Helper()
	m, err := target.Parse("x86-64-v3", threads)
	if err != nil {
		t.Fatal(err)
	}
	m.CPU.Cores = 2
	return m
}

// measured returns a task whose latencies are multiples of the analytic cost.
func measured(t testing.TB, w *expr.Workload, m *target.Target, slower func(searchspace.Point) float64) *Task {
	t.Helper()
	task := &Task{Workload: w, Target: m}
	s := spaceOf(t, w, m, schedule.Default)
	points := s.Seeds()
	for _, p := range points {
		task.Trials = append(task.Trials, Trial{Origin: s.Format(p), LatencySeconds: s.Cost(p) * slower(p) * 1e-9})
	}
	return task
}

func usual(searchspace.Point) float64 { return 1 }

// TestSimilarWorkloadSeedsTheSearch covers odd shapes, and checks that workloads of the same class come first.
func TestSimilarWorkloadSeedsTheSearch(t *testing.T) {
	m := machine(t, 1)
	odd, far := measured(t, kerneltest.Product(t, 61, 127, 93), m, usual), measured(t, kerneltest.Product(t, 4096, 16, 2048), m, usual)
	h := NewHistory(m, []*Task{far, odd})
	s := spaceOf(t, kerneltest.Product(t, 64, 128, 96), m, schedule.Default)
	points := h.near(s, "")
	if len(points) == 0 {
		t.Fatal("no points were taken from neighbours")
	}
	want, ok := s.Parse(odd.derive().ranked[0].Origin)
	if !ok || points[0].Key() != want.Key() {
		t.Errorf("first is %s, not the nearest task's best %s", s.Format(points[0]), s.Format(want))
	}
	for _, p := range points {
		if err := s.Legal(p); err != nil {
			t.Error(err)
		}
	}
}

// TestModelLearnsEffectsTheCostIgnores uses deep unrolling that takes four times the analytic cost, with another
// shape. Few tasks are only trusted in part.
func TestModelLearnsEffectsTheCostIgnores(t *testing.T) {
	m := machine(t, 1)
	slow := func(s *searchspace.Space) func(searchspace.Point) float64 {
		unroll := slices.IndexFunc(s.Knobs, func(k searchspace.Knob) bool { return k.Name == "ku" })
		return func(p searchspace.Point) float64 {
			if s.Knobs[unroll].Values[p[unroll]] > 2 {
				return 4
			}
			return 1
		}
	}
	var tasks []*Task
	for _, n := range []int64{64, 128, 256} {
		w := kerneltest.Product(t, 128, 128, n)
		tasks = append(tasks, measured(t, w, m, slow(spaceOf(t, w, m, schedule.Default))))
	}
	s := spaceOf(t, kerneltest.Product(t, 128, 128, 192), m, schedule.Default)
	v := NewJob(NewHistory(m, tasks)).View(s)
	truth := slow(s)
	sums, counts := map[bool]float64{}, map[bool]float64{}
	for _, p := range s.Seeds() {
		sch, err := s.Apply(p)
		if err != nil {
			continue
		}
		row := Describe(s, p, sch)
		sums[truth(p) > 1] += v.Times([]Row{row})[0] - Costs([]Row{row})[0]
		counts[truth(p) > 1]++
	}
	if learnt := sums[true]/counts[true] - sums[false]/counts[false]; v.job.Err() != nil || !(learnt > 0.25) {
		t.Errorf("the slow are corrected by %.2f doublings more than the others; %v", learnt, v.job.Err())
	}
}

func TestRetrainingStepsGrow(t *testing.T) {
	last, steps := 0, 0
	for n := range 2000 {
		at := step(n)
		if at < last || at > n {
			t.Fatalf("step(%d) is %d after %d", n, at, last)
		}
		if at > last {
			steps++
		}
		last = at
	}
	if steps < 10 || steps > 60 {
		t.Errorf("%d trainings for 2000 samples", steps)
	}
}

func record(w *expr.Workload, m *target.Target, origin string, at int64, seconds float64) *tilthv1.Record {
	r := &tilthv1.Record{
		Target: m.Fingerprint(), WorkloadDigest: w.Digest(), Workload: []byte(w.Text()),
		Measurement: &tilthv1.Measurement{
			Candidate: &tilthv1.Candidate{Digest: origin, Origin: []byte(origin)}, LatencySeconds: seconds,
			Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, At: &timestamppb.Timestamp{Seconds: at},
		},
	}
	if seconds == 0 {
		r.Measurement.Error = tilthv1.ErrorClass_ERROR_CLASS_CRASH
	}
	return r
}

func TestRecordsAreCollected(t *testing.T) {
	w, own, sibling := kerneltest.Product(t, 8, 8, 16), machine(t, 1), machine(t, 2)
	stranger := machine(t, 1)
	stranger.CPU.Model = "another"
	c := NewCollector(own)
	for _, r := range []*tilthv1.Record{
		record(w, own, "ku=1", 1, 3e-3), record(w, own, "ku=2", 2, 0), record(w, own, "ku=1", 3, 2e-3), record(w, own, "", 4, 1e-3),
		record(w, sibling, "ku=1", 1, 1e-3), record(w, stranger, "ku=1", 1, 1e-9),
	} {
		c.Add(r)
	}
	h := c.History()
	if len(h.tasks) != 2 {
		t.Fatalf("%d tasks", len(h.tasks))
	}
	want := []Trial{{Origin: "ku=1", Digest: "ku=1", LatencySeconds: 2e-3}, {Origin: "ku=2", Digest: "ku=2"}}
	if got := h.own(w.Digest()).Trials; !slices.Equal(got, want) {
		t.Errorf("trials %v, want the last of each candidate, %v", got, want)
	}
	if k := h.Trials(w.Digest()); len(k) != 1 || k[0].Origin != "ku=1" {
		t.Errorf("known are %v", k)
	}
	c.Add(&tilthv1.Record{Target: own.Fingerprint(), WorkloadDigest: "x", Workload: []byte("nonsense"),
		Measurement: record(w, own, "ku=1", 1, 1).GetMeasurement()})
	if h := c.History(); len(h.tasks) != 2 {
		t.Errorf("a workload that cannot be read is a task")
	}
}

func TestNoHistoryIsFine(t *testing.T) {
	var none *History
	s := spaceOf(t, kerneltest.Product(t, 8, 8, 16), machine(t, 1), schedule.Default)
	if none.Latencies(s) != nil {
		t.Error("it knows something")
	}
	for _, h := range []*History{nil, NewHistory(machine(t, 1), nil)} {
		v := NewJob(h).View(s)
		if len(v.Known()) > 0 || len(v.Similar()) > 0 || len(v.Times(nil)) > 0 || v.job.Err() != nil {
			t.Error("it knows something")
		}
	}
}

// spaceOf returns the candidate schedules of a workload on a target.
func spaceOf(t testing.TB, w *expr.Workload, on *target.Target, numerics schedule.Numerics) *searchspace.Space {
	t.Helper()
	s, err := registry.Space(w, on, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
