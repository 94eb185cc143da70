package records_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// crashEnv makes the test binary write to a store until it is killed: the store's name and folder.
const crashEnv = "TILTH_STORE_CRASH"

// write writes to the store in a folder until the process is killed.
func (k storeKind) write(folder string) error {
	s, err := k.open(folder)
	if err != nil {
		return err
	}
	last, err := s.LastJobID()
	begin, _ := strconv.Atoi(last)
	for n := begin + 1; err == nil; n++ { // until it is killed
		w := &records.Write{}
		w.OnCommitted(func() { fmt.Println(n) })
		numbered(w, n)
		if p := s.Commit(w); n%16 == 0 {
			err = p.Wait(context.Background())
		}
	}
	return err
}

// numbered adds five rows to a write.
func numbered(w *records.Write, n int) {
	id := fmt.Sprintf("%08d", n)
	storetest.PutNew(w, id, "ana", id)
	w.PutBatch(id+".0", &storev1.BatchRow{JobId: id, EventSequence: 1})
	w.AppendTrials(id, "cpu", &tilthv1.TaskSpec{WorkloadDigest: "conv"}, []*tilthv1.JobEvent{{Sequence: 2, Event: &tilthv1.JobEvent_Trial{
		Trial: &tilthv1.TrialRecorded{Measurement: storetest.Record("cpu", "conv", int64(n), 1/float64(n)).GetMeasurement()},
	}}})
}

// checkWithKills kills a process that writes to a store. It verifies that acknowledged writes are present, and that
// writes are stored completely or not at all, without gaps.
func (k storeKind) checkWithKills(t *testing.T, name string) {
	folder := k.folder(t)
	for round := range storetest.QuickOr(2, 4) {
		told := killed(t, name+" "+folder, 100+150*round)
		s := k.opened(t, folder)
		stored, err := s.LastJobID()
		count, _ := strconv.Atoi(stored)
		if err != nil || count < told {
			t.Fatalf("%d writes were told of, and %d are there, %v", told, count, err)
		}
		open, err := s.OpenJobs()
		if err != nil || len(open) != count {
			t.Errorf("%d jobs of %d are open, %v", len(open), count, err)
		}
		for n, j := range open {
			if j.ID != fmt.Sprintf("%08d", n+1) || j.LastSequence != 2 || j.Damage != nil || len(j.Progress) != 2 {
				t.Fatalf("job %d is %+v", n+1, j)
			}
		}
		if batches, err := s.OpenBatches(); err != nil || len(batches) != count {
			t.Errorf("%d batches of %d are under way, %v", len(batches), count, err)
		}
		known, err := s.Known("cpu", "conv", "", "", 1<<30)
		if err != nil || known.Trials != count || known.Best.GetLatencySeconds() != 1/float64(count) {
			t.Errorf("%d records of %d are there, the best of %v s, %v", known.Trials, count, known.Best.GetLatencySeconds(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killed starts a writing process, kills it after a number of stored writes, and returns the number of the last
// acknowledged write.
func killed(t *testing.T, store string, writes int) (acknowledged int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+store)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for lines := bufio.NewScanner(out); lines.Scan(); count++ {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			acknowledged = n
		}
		if count == writes {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	if count <= writes {
		t.Fatalf("the process ended by itself after %d writes", count)
	}
	return acknowledged
}
