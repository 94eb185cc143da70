package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// resumed returns a job whose first task has an earlier measurement of 1.5 ms.
func resumed() *tilthv1.Job {
	j := job()
	j.Progress = []*tilthv1.TaskProgress{{KnownTrials: 7, KnownBestSeconds: 0.0015, KnownBestDigest: "known", KnownDefaultSeconds: 0.004}, {}}
	return j
}

// TestTallyGoesOnFromWhatIsKnown is a regression test: a run with earlier records started without a latency, and
// could end slower than it began.
func TestTallyGoesOnFromWhatIsKnown(t *testing.T) {
	tally := NewTally(resumed(), nil)
	if tally.KnownTrials() != 7 || tally.Trials() != 0 || tally.Tasks[0].BestSeconds != 0.0015 || tally.Tasks[0].UntunedSeconds != 0.004 {
		t.Errorf("the tally begins as %+v", tally)
	}
	tally.Add(trial(1, 0, 0, "slower", 0.002, 0.002, none))
	if got := tally.Tasks[0].BestSeconds; got != 0.0015 {
		t.Errorf("a slower candidate makes the best %v s, want the 0.0015 that are known", got)
	}
	tally.Add(trial(2, 1, 0, "x", 0.003, 0.003, none))
	tally.Add(trial(3, 0, 1, "faster", 0.001, 0.001, none))
	want := Curve{{2 * time.Second, 2, 2*0.0015 + 0.003}, {3 * time.Second, 3, 2*0.001 + 0.003}}
	if fmt.Sprint(tally.Curve) != fmt.Sprint(want) {
		t.Errorf("the curve is %v, want %v", tally.Curve, want)
	}
	if s := tally.Summary(); s.KnownTrials != 7 || s.Trials != 3 || s.Tasks[0].KnownTrials != 7 {
		t.Errorf("the summary is %+v", s)
	}
}

// TestRemeasurementsReplaceKnownBests is a regression test: an earlier lucky measurement was kept although its
// candidate was remeasured.
func TestRemeasurementsReplaceKnownBests(t *testing.T) {
	tally := NewTally(resumed(), nil)
	tally.Add(trial(1, 0, 0, "known", 0.0018, 0.0018, none))
	if got := tally.Tasks[0].BestSeconds; got != 0.0018 {
		t.Errorf("the best is %v s, want 0.0018", got)
	}
	tally.Add(trial(2, 0, 1, "known", 0, 0, tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT))
	if got := tally.Tasks[0].BestSeconds; got != 0 {
		t.Errorf("after the best was refuted it is %v s", got)
	}
}

func TestCurvesBeginWithKnownBests(t *testing.T) {
	j := resumed()
	j.Progress[1] = &tilthv1.TaskProgress{KnownTrials: 1, KnownBestSeconds: 0.002}
	if got := NewTally(j, nil).Curve; len(got) != 1 || got[0] != (Point{0, 0, 0.005}) {
		t.Errorf("the curve is %v", got)
	}
}

// TestTasksWithoutARightCandidateSayWhy is a regression test: the table showed a dash for tasks whose candidates all
// failed.
func TestTasksWithoutARightCandidateSayWhy(t *testing.T) {
	tally := NewTally(job(), nil)
	for i, failure := range []struct {
		class   tilthv1.ErrorClass
		message string
	}{
		{tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, "off by 3"}, {tilthv1.ErrorClass_ERROR_CLASS_CRASH, "signal 11"},
		{tilthv1.ErrorClass_ERROR_CLASS_CRASH, "signal 4"},
	} {
		e := trial(i, 0, uint32(i), "bad", 0, 0, failure.class)
		e.GetTrial().GetMeasurement().Message = failure.message
		tally.Add(e)
	}
	if !tally.NoneCorrect() {
		t.Error("something is said to be right")
	}
	tally.State = tilthv1.JobState_JOB_STATE_DONE
	var out strings.Builder
	if err := tally.WriteFailures(&out); err != nil {
		t.Fatal(err)
	}
	want := "\nconv has no latency: none of 3 trials was right\n" +
		"  crash, 2 times; the first said: signal 11\n" +
		"  wrong_result, 1 times; the first said: off by 3\n" +
		"\n1 of 2 tasks have no latency: none of their candidates was measured; give more --trials or --time\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	tally.DeadLetters = 1
	out.Reset()
	if err := tally.WriteFailures(&out); err != nil || !strings.HasSuffix(out.String(), "was measured; the farm gave up on batches: 1\n") {
		t.Errorf("where the farm gave up: %s, %v", out.String(), err)
	}
	if m := tally.Summary().Tasks[0].Messages; m["crash"] != "signal 11" {
		t.Errorf("messages are %v", m)
	}
	tally.Add(trial(9, 1, 0, "right", 0.003, 0.003, none))
	if tally.NoneCorrect() {
		t.Error("nothing is said to be right")
	}
}

func TestSharesOfTime(t *testing.T) {
	tally := NewTally(job(), nil)
	if got := tally.Spent().Shares(0); got != (Shares{Wait: 1}) {
		t.Errorf("before anything happened: %+v", got)
	}
	tally.Add(&tilthv1.JobEvent{At: timestamppb.New(began), Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{SearchSeconds: 0.25}}})
	tally.Add(trial(1, 0, 0, "x", 0.001, 0.001, none)) // 0.25 s of building, 0.5 s of measuring
	if got, want := tally.Spent().Shares(2*time.Second).String(), "search 12 %, build 12 %, measure 25 %, wait 50 %"; got != want {
		t.Errorf("on one host: %s, want %s", got, want)
	}
	if got, want := tally.Spent().Shares(time.Second/2).String(), "search 25 %, build 25 %, measure 50 %, wait 0 %"; got != want {
		t.Errorf("on many: %s, want %s", got, want)
	}
}
