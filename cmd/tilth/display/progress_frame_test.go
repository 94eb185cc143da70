package display

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// busy returns a half-finished job of many tasks. One task has only failures, and one has no trials.
func busy(tasks int) *snapshot {
	job := &tilthv1.Job{CreatedAt: timestamppb.New(began), Spec: &tilthv1.JobSpec{}}
	var references []progress.Reference
	for i := range tasks {
		job.Spec.Tasks = append(job.Spec.Tasks, &tilthv1.TaskSpec{
			Name: fmt.Sprintf("conv2d+add+relu 1x56x56x%d k3x3 -> %d", 64+i, 64+i), Weight: 2, Flop: 1e9,
		})
		references = append(references, progress.Reference{DefaultDigest: "default", PeakSeconds: 0.001, ByteSeconds: 0.0004})
	}
	job.Progress = []*tilthv1.TaskProgress{{KnownTrials: 12}}
	t := progress.NewTally(job, references)
	record := func(i int, digest string, latency float64, class tilthv1.ErrorClass) {
		t.Add(&tilthv1.JobEvent{At: timestamppb.New(began.Add(time.Second)), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			TaskIndex: uint32(i), BestSeconds: latency,
			Measurement: &tilthv1.Measurement{
				Candidate: &tilthv1.Candidate{Digest: digest}, LatencySeconds: latency, Error: class, BuildSeconds: 0.2, RunSeconds: 0.1,
			},
		}}})
	}
	for i := range tasks - 1 {
		if i == tasks/2 {
			record(i, "x", 0, tilthv1.ErrorClass_ERROR_CLASS_CRASH)
			continue
		}
		record(i, "default", 0.001*float64(i+2), tilthv1.ErrorClass_ERROR_CLASS_NONE)
		record(i, "x", 0.001*float64(i+1), tilthv1.ErrorClass_ERROR_CLASS_NONE)
	}
	return take(t)
}

func TestFrameOf80Columns(t *testing.T) {
	got := strings.Join(frame(busy(30), Budget{Trials: 200, Time: 10 * time.Minute}, time.Minute, 80, 14), "\n")
	want := `TASK                         SHARE     BEST  SPEED-UP  GFLOP/s  OF LIMIT  TRIALS
conv2d+add…56x79 k3x3 -> 79      -        -         -        -  -              1
conv2d+add…56x92 k3x3 -> 92    7 %  29.0 ms     1.03x     34.5  3 %            2
conv2d+add…56x91 k3x3 -> 91    7 %  28.0 ms     1.04x     35.7  4 %            2
conv2d+add…56x90 k3x3 -> 90    6 %  27.0 ms     1.04x     37.0  4 %            2
conv2d+add…56x89 k3x3 -> 89    6 %  26.0 ms     1.04x     38.5  4 %            2
conv2d+add…56x88 k3x3 -> 88    6 %  25.0 ms     1.04x     40.0  4 %            2
conv2d+add…56x87 k3x3 -> 87    6 %  24.0 ms     1.04x     41.7  4 %            2
conv2d+add…56x86 k3x3 -> 86    5 %  23.0 ms     1.04x     43.5  4 %            2
22 more                       57 %        -         -        -  -             42
[==        ] trials 57/200  1:00/10:00  left 2:31  28 of 30 tasks 838 ms
resumed: 12 trials known  errors: crash 1
time: search 0 %, build 19 %, measure 10 %, wait 71 %`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFramesFitAllTerminals is a regression test: overlong frames scrolled with every refresh.
func TestFramesFitAllTerminals(t *testing.T) {
	for _, tasks := range []int{1, 2, 3, 30} {
		s := busy(tasks)
		for width := 20; width <= 140; width += 3 {
			for height := 1; height <= 40; height++ {
				lines := frame(s, Budget{Time: time.Minute}, time.Second, width, height)
				if len(lines) > max(height-1, 1) || len(lines) == 0 {
					t.Fatalf("%d tasks on %dx%d: %d lines", tasks, width, height, len(lines))
				}
				for _, line := range lines {
					if utf8.RuneCountInString(line) > width {
						t.Fatalf("%d tasks on %dx%d: the line %q has %d columns", tasks, width, height, line, utf8.RuneCountInString(line))
					}
				}
			}
		}
	}
}

func TestFrameWithoutAnythingYet(t *testing.T) {
	lines := frame(take(newTally()), Budget{}, 0, 0, 0)
	if len(lines) != 4 || lines[2] != "[          ] trials 0  0:00" {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}
