package loadtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// TestMain lets this binary act as the tracker's process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == trackerArgument {
		if err := ServeTracker(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const trackerArgument = "serve-tracker"

// small returns the options of a small farm. Under -short it proposes few candidates a second, which spares the
// processors.
func small(t *testing.T) Options {
	rate := 0.0
	if testing.Short() {
		rate = 300
	}
	return Options{
		Rate:    rate,
		Devices: 30, Jobs: 4, Tasks: 3, Workloads: 5, Trials: 200, Batch: 8, InFlight: 4, Time: 2 * time.Second,
		BuildTime: 5 * time.Millisecond, TrialTime: time.Millisecond, Connections: 10, Seed: 1,
		Dir: t.TempDir(), Tracker: []string{os.Args[0], trackerArgument},
	}
}

func TestSimulatedFarmLosesNothing(t *testing.T) {
	o := small(t)
	o.Records = 5000
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Lost != 0 || d.Duplicated != 0 || d.Results == 0 || d.Devices != 30 {
		t.Errorf("%+v", d)
	}
	for name, v := range map[string]float64{
		"lease p50": d.LeaseP50, "lease p99": d.LeaseP99, "result p99": d.ResultP99, "fsyncs": d.FsyncsPerSecond,
		"memory": float64(d.RSSBytes), "processor time": d.TrackerCPUSeconds, "restart": d.RestartSeconds,
	} {
		if !(v > 0) {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// TestKillsAndLostAnswersLoseNothing combines all kinds of faults.
func TestKillsAndLostAnswersLoseNothing(t *testing.T) {
	o := small(t)
	o.Time, o.Tuners, o.Builders = 3*time.Second, 4, 3
	o.Failures = Failures{Build: 0.1, Crash: 0.1, Infra: 0.05, LostAnswers: 0.05, MeanLife: 2 * time.Second, Kills: 3}
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Lost != 0 || d.Duplicated != 0 || d.Results == 0 || d.Kills != 3 {
		t.Errorf("%+v", d)
	}
}

func TestVerdictCountsWhatIsLostAndWhatIsThereTwice(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "r.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	o := Options{Workloads: 1, TraceBytes: 10, Samples: 1}
	w := &records.Write{}
	w.PutNew("job-00000001", []byte("r"), records.EncodeJob(&tilthv1.JobSpec{}, nil))
	w.PutJob(jobRow("job-00000001"))
	var events []*tilthv1.JobEvent
	var r *tilthv1.Record
	for sequence, trial := range []uint32{0, 1, 1} {
		r = o.record(sequence, time.Unix(int64(sequence), 0))
		r.Measurement.Candidate.Trial = trial
		events = append(events, &tilthv1.JobEvent{Sequence: uint64(sequence + 1), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			TaskIndex: 1, Measurement: r.GetMeasurement(),
		}}})
	}
	w.AppendTrials("job-00000001", r.GetTarget(), &tilthv1.TaskSpec{WorkloadDigest: r.GetWorkloadDigest()}, events)
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := newLedger(2)
	l.record("job-00000001", 1, []uint32{0, 1, 2, 64}, "tracker") // 2 and 64 are missing, 1 is recorded twice
	l.propose("job-00000001", 0, 0, 3)                            // all missing
	l.job("job-00000002")                                         // missing
	if v, err := l.compare(db); err != nil || v != (verdict{Lost: 6, Duplicated: 1}) {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"devices is 0: at least 1 is needed":                                     func(o *Options) { o.Devices = 0 },
		"jobs is -1: at least 1 is needed":                                       func(o *Options) { o.Jobs = -1 },
		"time is not positive":                                                   func(o *Options) { o.Time = 0 },
		"a probability is 1, not from 0 to less than 1":                          func(o *Options) { o.Failures.Crash = 1 },
		"a number is negative":                                                   func(o *Options) { o.Batch = -1 },
		"a time is negative":                                                     func(o *Options) { o.Warmup = -1 },
		"the rate is -1: want a positive number, or 0":                           func(o *Options) { o.Rate = -1 },
		"a file has one tracker and one shard: name a database for more (store)": func(o *Options) { o.Trackers = 2 },
		"the store is neither empty (a file) nor the address of a database":      func(o *Options) { o.Store = "memory" },
		"shards is 17: at most 16 are possible":                                  func(o *Options) { o.Store, o.Shards = "postgres:///load", 17 },
		"trackers is 3 and shards 2: each tracker needs one at least":            func(o *Options) { o.Store, o.Trackers, o.Shards = "postgres:///load", 3, 2 },
	} {
		o := small(t)
		change(&o)
		if _, err := Run(t.Context(), o); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func jobRow(id string) *storev1.JobRow { return &storev1.JobRow{Job: &tilthv1.Job{Id: id}} }
