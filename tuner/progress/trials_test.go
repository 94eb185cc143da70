package progress

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// job has two tasks of the same name.
func job() *tilthv1.Job {
	return &tilthv1.Job{
		Id: "j", State: tilthv1.JobState_JOB_STATE_QUEUED, CreatedAt: timestamppb.New(began),
		Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{
			{Name: "conv", Weight: 2, Flop: 2e6}, {Name: "conv", Weight: 1, Flop: 1e6},
		}},
	}
}

func trial(second int, task, number uint32, digest string, latency, best float64, class tilthv1.ErrorClass) *tilthv1.JobEvent {
	return &tilthv1.JobEvent{
		At: timestamppb.New(began.Add(time.Duration(second) * time.Second)),
		Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			TaskIndex: task, BestSeconds: best,
			Measurement: &tilthv1.Measurement{
				Candidate: &tilthv1.Candidate{Digest: digest, Trial: number}, LatencySeconds: latency, Error: class,
				BuildSeconds: 0.25, RunSeconds: 0.5,
			},
		}},
	}
}

const none = tilthv1.ErrorClass_ERROR_CLASS_NONE

func events() []*tilthv1.JobEvent {
	return []*tilthv1.JobEvent{
		trial(1, 0, 0, "default", 0.002, 0.002, none),
		trial(2, 0, 1, "other", 0.001, 0.001, none),
		trial(3, 0, 2, "bad", 0, 0.001, tilthv1.ErrorClass_ERROR_CLASS_CRASH),
		trial(4, 1, 0, "default2", 0.003, 0.003, none),
		{At: timestamppb.New(began.Add(5 * time.Second)), Event: &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{
			State: tilthv1.JobState_JOB_STATE_DONE, Reason: "trials spent"}}},
	}
}

func TestTally(t *testing.T) {
	tally := NewTally(job(), []Reference{{DefaultDigest: "default"}, {DefaultDigest: "default2"}})
	if tally.BestSeconds() != 0 || tally.UntunedSeconds() != 0 {
		t.Error("a job without trials has a latency")
	}
	for _, e := range events() {
		tally.Add(e)
	}
	if tally.Events != 5 || tally.Trials() != 4 || tally.Elapsed() != 5*time.Second || tally.Reason != "trials spent" {
		t.Errorf("tally is %+v", tally)
	}
	if got, want := tally.UntunedSeconds(), 2*0.002+0.003; got != want {
		t.Errorf("untuned %v, want %v", got, want)
	}
	if got, want := tally.BestSeconds(), 2*0.001+0.003; got != want {
		t.Errorf("best %v, want %v", got, want)
	}
	if errors := tally.Errors(); len(errors) != 1 || errors["crash"] != 1 {
		t.Errorf("errors are %v", errors)
	}
	s := tally.Summary()
	if s.State != "done" || s.Trials != 4 || s.Tasks[1].Task != "conv #2" || s.Tasks[0].BuildSeconds != 0.75 {
		t.Errorf("summary is %+v", s)
	}
}

func TestTableOfTally(t *testing.T) {
	tally := NewTally(job(), []Reference{{DefaultDigest: "default", PeakSeconds: 0.0005, ByteSeconds: 0.0008}, {PeakSeconds: 0.0045}})
	list := events()
	list[1].GetTrial().GetMeasurement().Interval = &tilthv1.Interval{LowSeconds: 0.001, HighSeconds: 0.0011, Level: 0.9}
	for _, e := range list {
		tally.Add(e)
	}
	var out strings.Builder
	if err := tally.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := "TASK       TIMES  UNTUNED    TUNED  INTERVAL      SPEED-UP  GFLOP/s  OF LIMIT    TRIALS  ERRORS\n" +
		"conv          2x  2.00 ms  1.00 ms  1.00–1.10 ms     2.00x     2.00  80 % bytes       3  crash 1\n" +
		"conv #2       1x        -  3.00 ms  -                    -    0.333  -                1  -\n" +
		"all tasks               -  5.00 ms                       -     1.00  -                4  crash 1\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestLogHasOneLineForEachTrial(t *testing.T) {
	tally := NewTally(job(), nil)
	var out strings.Builder
	log := NewLog(&out, tally)
	all := events()
	all[1].GetTrial().PredictedSeconds = 0.0015
	for _, e := range all {
		if err := log.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"task":"conv","trial":0,"latency_s":0.002,"error":"","elapsed_s":1,"build_s":0.25,"run_s":0.5,"best_s":0.002}
{"task":"conv","trial":1,"latency_s":0.001,"error":"","elapsed_s":2,"build_s":0.25,"run_s":0.5,"best_s":0.001,"predicted_s":0.0015}
{"task":"conv","trial":2,"latency_s":null,"error":"crash","elapsed_s":3,"build_s":0.25,"run_s":0.5,"best_s":0.001}
{"task":"conv #2","trial":0,"latency_s":0.003,"error":"","elapsed_s":4,"build_s":0.25,"run_s":0.5,"best_s":0.003}
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestUniqueNamesStayUnique(t *testing.T) {
	taken := map[string]int{}
	var names []string
	for _, name := range []string{"a", "a #2", "a", "a", "b"} {
		names = append(names, UniqueName(taken, name))
	}
	if got := strings.Join(names, "|"); got != "a|a #2|a #2 #2|a #3|b" {
		t.Errorf("names are %s", got)
	}
}
