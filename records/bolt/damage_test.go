package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// fullKinds creates a records file with rows of all kinds, and several pages of the most frequent ones.
func fullKinds(t testing.TB, path string) {
	t.Helper()
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &records.Write{}
	for n := range 40 {
		id := fmt.Sprintf("job-%08d-abcdef", n+1)
		state := tilthv1.JobState_JOB_STATE_RUNNING
		if n%2 == 0 {
			state = tilthv1.JobState_JOB_STATE_DONE
		}
		canonical := fmt.Appendf(nil, "workload %d", n%5)
		spec := &tilthv1.JobSpec{Name: "net", Target: &tilthv1.TargetSpec{Fingerprint: "cpu"}, Tasks: []*tilthv1.TaskSpec{{WorkloadDigest: records.Digest(canonical), Workload: canonical}}}
		w.PutNew(id, records.RequestKey("ana", fmt.Sprint("request ", n)), records.EncodeJob(spec, nil))
		w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: id, State: state}, Proposals: 2})
		w.PutProgress(id, 0, &tilthv1.TaskProgress{Trials: 8})
		w.AppendEvent(id, &tilthv1.JobEvent{Sequence: 1, Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{Candidates: []*tilthv1.Candidate{{Digest: "a"}}}}})
		var events []*tilthv1.JobEvent
		for i := range uint64(8) {
			events = append(events, &tilthv1.JobEvent{Sequence: 2 + i, Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
				Measurement: measured(n, int64(n*8)+int64(i), 1/float64(n*8+int(i)+1)),
			}}})
		}
		w.AppendTrials(id, "cpu", &tilthv1.TaskSpec{WorkloadDigest: records.Digest(canonical)}, events)
		batch := &storev1.BatchRow{JobId: id, EventSequence: 1, Recorded: []byte{0}}
		w.PutBatch(id+".00000000", batch)
		w.PutBatch(id+".00000001", batch)
		w.CloseBatch(id+".00000001", batch)
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: fmt.Sprint("board ", n)}, Session: "s"})
		w.PutDevice(fmt.Sprint("board ", n), &storev1.DeviceRow{Cordon: &tilthv1.Cordon{By: "anna"}})
	}
	if err := errors.Join(db.Commit(w).Wait(context.Background()), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// measured returns a verified measurement.
func measured(candidate int, second int64, latency float64) *tilthv1.Measurement {
	trace := fmt.Appendf(nil, "trace %d %0200d", candidate, second)
	return &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, Device: "board-1",
		At: timestamppb.New(time.Unix(second, 0)), SamplesSeconds: []float64{latency}, LatencySeconds: latency,
	}
}

// content returns the readable content of a file, by unique names.
func content(db *DB) map[string]proto.Message {
	all := map[string]proto.Message{}
	keep := func(name string, m proto.Message, err error) {
		if err == nil {
			all[name] = m
		}
	}
	_ = db.List(context.Background(), "", "", func(r *tilthv1.Record) error {
		r.Workload = nil
		all["record "+r.GetMeasurement().GetCandidate().GetDigest()] = r
		return nil
	})
	best, _, _ := db.BestPage("", "", math.MaxInt, math.MaxInt)
	for _, r := range best {
		all["listed best of "+r.GetWorkloadDigest()] = r
	}
	for n := range 5 {
		digest := records.Digest(fmt.Appendf(nil, "workload %d", n))
		r, err := db.BestAllowed("cpu", digest, "")
		keep("best of "+digest, r, err)
		r, err = db.BestAllowed("cpu", digest, "strict")
		keep("strict best of "+digest, r, err)
		_, _ = db.Known("cpu", digest, "", r.GetMeasurement().GetCandidate().GetDigest(), 1000)
	}
	for n := range 40 {
		id := fmt.Sprintf("job-%08d-abcdef", n+1)
		job, err := db.Job(id)
		keep("job "+id, job, err)
		made, err := db.JobByRequest("ana", fmt.Sprint("request ", n))
		keep("requested "+id, wrapperspb.String(made), err)
		events, _ := db.Events(id, 1, 100)
		for _, e := range events {
			if e.GetTrial() == nil || e.GetTrial().GetMeasurement() != nil {
				keep(fmt.Sprint("event ", e.GetSequence(), id), e, nil)
			}
		}
		row, err := db.ClosedBatch(id + ".00000001")
		keep("closed batch of "+id, row, err)
	}
	open, _ := db.OpenJobs()
	for _, j := range open {
		keep("open "+j.ID, j.Row, j.Damage)
	}
	batches, _ := db.OpenBatches()
	for _, b := range batches {
		keep("batch "+b.ID, b.Row, b.Damage)
	}
	_ = db.Agents(func(a *tilthv1.Agent) { keep("agent "+a.GetSpec().GetName(), a, nil) })
	_ = db.Devices(func(name string, row *storev1.DeviceRow) { keep("device "+name, row, nil) })
	_, _, _ = db.Jobs(records.JobQuery{Max: 100, MaxBytes: 1 << 20})
	_, _, _ = db.ClosedJobs()
	_, _ = db.LastJobID()
	return all
}

// checkDamaged reads a damaged file. Everything that it returns must equal the undamaged file, except for replaced
// best records.
func checkDamaged(t *testing.T, path string, whole map[string]proto.Message) {
	t.Helper()
	report, err := Verify(t.Context(), path)
	if err != nil && !errors.Is(err, records.ErrVersion) {
		t.Fatalf("verify: %v", err)
	}
	for name, open := range map[string]func(string, Options) (*DB, error){"reading": OpenReadOnly, "writing": OpenExisting} {
		db, err := open(path, Options{})
		if err != nil {
			if !errors.Is(err, records.ErrDamaged) && !errors.Is(err, records.ErrVersion) || report != nil && report.Damaged == 0 {
				t.Errorf("open for %s: %v; verified: %+v", name, err, report)
			}
			continue
		}
		said := content(db)
		for name, m := range said {
			checkServed(t, name, m, whole)
		}
		if report.Damaged == 0 && len(said) != len(whole) {
			t.Errorf("%d things are said, of %d, and no damage is found: %+v", len(said), len(whole), report)
		}
		if err := guard(db.Close); err != nil {
			t.Logf("close: %v", err)
		}
	}
}

// checkServed checks one item read from a damaged file.
func checkServed(t *testing.T, name string, m proto.Message, whole map[string]proto.Message) {
	t.Helper()
	if proto.Equal(m, whole[name]) {
		return
	}
	switch m := m.(type) {
	case *tilthv1.Record: // the best undamaged one, or one without its workload's damaged form
		was, is := whole["record "+m.GetMeasurement().GetCandidate().GetDigest()].(*tilthv1.Record)
		if is && proto.Equal(m.GetMeasurement(), was.GetMeasurement()) && m.GetWorkloadDigest() == was.GetWorkloadDigest() {
			return
		}
	case *storev1.DeviceRow:
		if proto.Equal(m, damagedDevice()) {
			return
		}
	}
	t.Errorf("%s is %v, was %v", name, m, whole[name])
}

// TestFlippedBitsAreDetected flips bits throughout a file with rows of all kinds.
func TestFlippedBitsAreDetected(t *testing.T) {
	path, whole, file := wholeFile(t)
	rng := rand.New(rand.NewPCG(1, 2))
	flips := 100
	if testing.Short() {
		flips = 15
	}
	for range flips {
		damaged := append([]byte(nil), file...)
		at := rng.IntN(len(damaged))
		damaged[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		checkDamaged(t, path, whole)
		if t.Failed() {
			t.Fatalf("byte %d flipped", at)
		}
	}
}

// wholeFile returns an undamaged file, its content, and its bytes.
func wholeFile(t testing.TB) (path string, whole map[string]proto.Message, file []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "r.db")
	fullKinds(t, path)
	db, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole = content(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, whole, file
}

func TestWholeFileVerifies(t *testing.T) {
	path, _, _ := wholeFile(t)
	report, err := Verify(t.Context(), path)
	if err != nil || report.Damaged != 0 || report.Rows < 320 || report.Pages < 20 {
		t.Errorf("verified: %+v, %v", report, err)
	}
}

// FuzzDamagedFile changes bytes of a file with rows of all kinds, and may truncate it. The process must not crash,
// and must not return anything that was never written.
func FuzzDamagedFile(f *testing.F) {
	_, whole, file := wholeFile(f)
	f.Add([]byte{0, 0, 0, 16, 1}, uint32(0))
	f.Add([]byte{0, 0, 64, 10, 3, 0, 0, 192, 8, 255}, uint32(0))
	f.Add([]byte{}, uint32(len(file)/2))
	f.Fuzz(func(t *testing.T, changes []byte, cut uint32) {
		damaged := append([]byte(nil), file...)
		for ; len(changes) >= 5; changes = changes[5:] {
			damaged[int(binary.BigEndian.Uint32(changes))%len(damaged)] ^= changes[4]
		}
		if cut > 0 {
			damaged = damaged[:int(cut)%len(damaged)]
		}
		path := filepath.Join(t.TempDir(), "r.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		checkDamaged(t, path, whole)
	})
}

// TestDamagedPagesAreRefused makes pages refer to wrong ones, which would make bbolt loop or read free pages.
func TestDamagedPagesAreRefused(t *testing.T) {
	path, whole, file := wholeFile(t)
	meta, err := newestMeta(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	branches, size := 0, int(meta.pageSize)
	for id := 2; id < int(meta.highWater); id++ {
		page := file[id*size : (id+1)*size]
		if order.Uint64(page) != uint64(id) || order.Uint16(page[8:]) != branchFlag {
			continue
		}
		branches++
		for _, child := range []uint64{uint64(id), 0, meta.root, meta.freelist, meta.highWater, 1 << 60} {
			damaged := append([]byte(nil), file...)
			order.PutUint64(damaged[id*size+pageHeaderBytes+8:], child)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenReadOnly(path, Options{}); !errors.Is(err, records.ErrDamaged) {
				t.Errorf("branch %d leads to %d: %v", id, child, err)
			}
			checkDamaged(t, path, whole)
		}
	}
	if branches == 0 {
		t.Error("the file has no branch")
	}
}

func TestPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, opened := Open(pipe, Options{})
	_, verified := Verify(t.Context(), pipe)
	_, restored := Restore(t.Context(), pipe, filepath.Join(dir, "records.db"), time.Now())
	for what, err := range map[string]error{"opened": opened, "verified": verified, "restored": restored} {
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
