package storetest

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Record returns a valid record with a candidate of its own; latency 0 makes it a failure.
func Record(target, workload string, second int64, latency float64) *tilthv1.Record {
	trace := fmt.Appendf(nil, "trace %d", second)
	m := &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)},
		Error:     tilthv1.ErrorClass_ERROR_CLASS_CRASH,
		Device:    "board-1",
		At:        timestamppb.New(time.Unix(second, 0)),
	}
	if latency > 0 {
		m.Error = tilthv1.ErrorClass_ERROR_CLASS_NONE
		m.SamplesSeconds = []float64{latency}
		m.LatencySeconds = latency
	}
	return &tilthv1.Record{
		Target:         target,
		Name:           workload,
		Workload:       []byte(workload),
		WorkloadDigest: records.Digest([]byte(workload)),
		Measurement:    m,
	}
}

// Add adds records in one write.
func Add(t *testing.T, s records.Store, rs ...*tilthv1.Record) {
	t.Helper()
	w := &records.Write{}
	for _, r := range rs {
		w.AddRecord(r)
	}
	if err := s.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// List returns the matching records.
func List(t *testing.T, s records.Store, target, workload string) (out []*tilthv1.Record) {
	t.Helper()
	err := s.List(t.Context(), target, workload, func(r *tilthv1.Record) error {
		out = append(out, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ImportSize is the number of distinct records of Numbered.
const ImportSize = 2100

// Numbered yields n records, then err.
func Numbered(n int64, err error) func() (*tilthv1.Record, error) {
	at := int64(0)
	return func() (*tilthv1.Record, error) {
		if at++; at > n {
			return nil, err
		}
		return Record("cpu", fmt.Sprint("w", at%3), 1+at%ImportSize, 0.5), nil
	}
}

// PutNew stores a new, running job of an owner with two tasks and one event.
func PutNew(w *records.Write, id, owner, request string) {
	const running = tilthv1.JobState_JOB_STATE_RUNNING
	conv, pool := []byte("conv"), []byte("pool")
	spec := &tilthv1.JobSpec{Name: "net", Owner: owner, Tasks: []*tilthv1.TaskSpec{
		{Name: "a", WorkloadDigest: records.Digest(conv), Workload: conv}, {Name: "b", WorkloadDigest: records.Digest(pool), Workload: pool},
	}}
	key := records.RequestKey(owner, request)
	w.PutNew(id, key, records.EncodeJob(spec, []*tilthv1.TaskProgress{{}, {}}))
	w.PutJob(JobRow(id, running, key))
	w.AppendEvent(id, &tilthv1.JobEvent{Sequence: 1, Event: &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{State: running}}})
}

// JobRow returns a job's row.
func JobRow(id string, state tilthv1.JobState, request []byte) *storev1.JobRow {
	return &storev1.JobRow{Job: &tilthv1.Job{Id: id, State: state}, RequestKey: request, Proposals: 3}
}

// Checks sets how many random cases each property is checked with from now on: quick of them in the quick tier, else
// full, unless the command line sets a number.
func Checks(quick, full int) {
	flag.Parse()
	asked, n := false, full
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if testing.Short() {
		n = 5 * quick // rapid runs a fifth of them
	}
	if !asked {
		_ = flag.Lookup("rapid.checks").Value.Set(strconv.Itoa(n)) // unlike flag.Set, Visit ignores it
	}
}

// QuickOr returns quick in the quick tier, else full.
func QuickOr(quick, full int) int {
	if testing.Short() {
		return quick
	}
	return full
}
