package main

import (
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// A tracker that names a task which the job has not used to bring this down.
func TestShowingAJobOutlivesWrongTaskIndices(t *testing.T) {
	view := newJobView(&tilthv1.Job{
		Id: "job-00000001", Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv"}}},
		Progress:    []*tilthv1.TaskProgress{{Trials: 1}, {Trials: 2}},
		DeadLetters: []*tilthv1.DeadLetter{{BatchId: "b", TaskIndex: 1<<32 - 1}},
	})
	var out strings.Builder
	if err := view.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"conv", "unknown task 4294967295"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
