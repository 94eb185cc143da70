package replay

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func TestSampleIsDistinctAndHasTheDefaults(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 128, 256, 256), testTarget(t), schedule.Default)
	list := drawSample(s, 48)
	if len(list) != 48 || !reflect.DeepEqual(drawSample(s, 48), list) || !reflect.DeepEqual(drawSample(s, 32), list[:32]) {
		t.Errorf("%d candidates, want 48, the same each time, and that fewer are the first of them", len(list))
	}
	digests, origins := map[string]bool{}, map[string]bool{}
	for _, c := range list {
		if digests[c.Digest] {
			t.Errorf("%s appears twice", c.Origin)
		}
		digests[c.Digest], origins[c.Origin] = true, true
	}
	for _, p := range s.Defaults() {
		if !origins[s.Format(p)] {
			t.Errorf("the default %s is missing", s.Format(p))
		}
	}
}

func TestSampleOfASmallSpaceIsAllOfIt(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 1, 8, 16), testTarget(t), schedule.Strict)
	if all, some := len(Candidates(s, 0)), len(drawSample(s, 1<<20)); some == 0 || some > all {
		t.Errorf("%d of %d schedules", some, all)
	}
}

func TestSampleIsRecordedAndMarked(t *testing.T) {
	r := newRecorder(t)
	r.Sample = 8
	r.Limits.Samples, r.Limits.Budget = 7, time.Minute // independent of load
	task := Task{Name: "matmul 16x32 -> 24", Model: "made-up", Workload: kerneltest.Product(t, 16, 32, 24)}
	path, err := r.Record(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !set.Sampled || len(set.Values) > 0 || len(set.Points) != 8 || set.Best() == 0 {
		t.Errorf("sampled %v, values %v, %d points, best %g s", set.Sampled, set.Values, len(set.Points), set.Best())
	}
	for _, p := range set.Points {
		if p.Error == "" && len(p.Samples) != 7 {
			t.Errorf("%s was sampled %d times, not 7 as all others", p.Origin, len(p.Samples))
		}
	}
	if again, err := r.Record(t.Context(), task); err != nil || again != path {
		t.Errorf("again: %s, %v", again, err)
	}
	files, err := os.ReadDir(r.Dir)
	if err != nil || len(files) != 1 || !strings.Contains(files[0].Name(), task.Workload.Digest()[:8]) {
		t.Errorf("files %v, %v: want one with the workload's digest in its name", files, err)
	}
}

func TestModelsThatShareTasksHaveThemOnce(t *testing.T) {
	var models []Model
	for _, name := range []string{"resnet-18", "resnet-34"} {
		m, err := BuiltIn(name, array.Storage{})
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	all := Join(models...)
	if first := Join(models[0]); !reflect.DeepEqual(all[:len(first)], first) {
		t.Error("the tasks do not begin with the first model's")
	}
	digests := map[string]bool{}
	for _, task := range all {
		if d := task.Workload.Digest(); digests[d] {
			t.Errorf("%s appears twice", task.Name)
		} else {
			digests[d] = true
		}
	}
}
