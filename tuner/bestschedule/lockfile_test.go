package bestschedule

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

const machine = "some-machine"

// tasks returns a product and a smaller one, each with a choice: a schedule without primitives.
func tasks(t *testing.T) ([]program.Task, []aot.Choice) {
	t.Helper()
	list := []program.Task{{Name: "first", Workload: kerneltest.Product(t, 8, 8, 8)}, {Name: "second", Workload: kerneltest.Product(t, 4, 4, 4)}}
	choices := make([]aot.Choice, len(list))
	for k := range list {
		choices[k] = aot.Choice{Origin: "default", Trace: trace(t, list[k].Workload)}
	}
	return list, choices
}

func trace(t *testing.T, w *expr.Workload) []byte {
	t.Helper()
	s, err := schedule.Replay(w, []byte("tilth-trace 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Trace()
}

// TestLockIsObeyedAndCompleted checks that the lock overrides choices for its target only, and that missing tasks
// are added.
func TestLockIsObeyedAndCompleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tilth.lock")
	l, err := ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	list, choices := tasks(t)
	choices[0].Origin, choices[0].LatencySeconds, choices[0].RelativeError = "tuned", 1e-6, 1e-7
	choices[0].Record = &aot.Record{Key: "0102", Candidate: "03", MeasuredAt: "2026-01-02T03:04:05Z"}
	if added, err := l.Apply(machine, list[:1], schedule.Strict, choices[:1]); added != 1 || err != nil {
		t.Fatalf("%d added, %v", added, err)
	}
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	if l, err = ReadLock(path); err != nil || l.Has(machine, list) || !l.Has(machine, list[:1]) || l.Has("another", list[:1]) {
		t.Fatalf("%+v, %v", l, err)
	}
	want := slices.Clone(choices)
	choices[0] = aot.Choice{Origin: "default"}
	added, err := l.Apply(machine, list, schedule.Strict, choices)
	if added != 1 || err != nil || !l.Has(machine, list) {
		t.Fatalf("%d added, %v", added, err)
	}
	for k, c := range choices {
		if string(c.Trace) != string(want[k].Trace) || c.Origin != want[k].Origin || c.LatencySeconds != want[k].LatencySeconds || c.RelativeError != want[k].RelativeError ||
			!reflect.DeepEqual(c.Record, want[k].Record) {
			t.Errorf("the choice of task %d is %+v, want %+v", k, c, want[k])
		}
	}
}

// TestLockThatDoesNotFitIsRefused checks that the error names the task and a remedy.
func TestLockThatDoesNotFitIsRefused(t *testing.T) {
	list, choices := tasks(t)
	for name, text := range map[string]string{
		"no trace":         "nonsense",
		"of another shape": "tilth-trace 1\nsplit 7 0 2 0\n",
	} {
		l := &LockFile{Version: version, Targets: map[string]map[string]LockEntry{machine: {list[0].Workload.Digest(): {Task: "first", Trace: text}}}}
		if _, err := l.Apply(machine, list, schedule.Strict, choices); err == nil || !strings.Contains(err.Error(), "schedule of first") || !strings.Contains(err.Error(), "remove its entry") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLocksCannotBypassNumerics checks that a lock cannot select Winograd's algorithm for strict numerics.
func TestLocksCannotBypassNumerics(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[10,10,4]
constant t1 f32[3,3,4,5]
sum t2 f32[8,8,5] over 3,3,4 = (mul [t0 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
output t2
`)
	if err != nil {
		t.Fatal(err)
	}
	list := []program.Task{{Name: "conv", Workload: w}}
	entries := map[string]LockEntry{w.Digest(): {Task: "conv", Trace: "tilth-trace 1\nwinograd 0 4\n"}}
	l := &LockFile{Version: version, Targets: map[string]map[string]LockEntry{machine: entries}}
	if _, err := l.Apply(machine, list, schedule.Default, make([]aot.Choice, 1)); err != nil {
		t.Fatal(err)
	}
	_, err = l.Apply(machine, list, schedule.Strict, make([]aot.Choice, 1))
	if err == nil || !strings.Contains(err.Error(), "schedule of conv needs --numerics default") {
		t.Errorf("the error is %v", err)
	}
}

// TestDamagedLockIsRefused checks that the error names the file and a remedy.
func TestDamagedLockIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "damaged"},
		"cut short":     {`{"version": 1, "targ`, "damaged"},
		"two":           {`{"version": 1} {"version": 1}`, "follows its end"},
		"unknown field": {`{"version": 1, "tasks": []}`, "damaged"},
		"newer":         {`{"version": 3}`, "version 3"},
		"of no version": {`{"targets": {}}`, "version 0"},
	} {
		path := filepath.Join(t.TempDir(), "tilth.lock")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLock(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLockOfVersion1IsReadAndWrittenAsVersion2 checks the conversion of the older format.
func TestLockOfVersion1IsReadAndWrittenAsVersion2(t *testing.T) {
	list, choices := tasks(t)
	path := filepath.Join(t.TempDir(), "tilth.lock")
	text := `{"version": 1, "targets": {"` + machine + `": {"` + list[0].Workload.Digest() +
		`": {"task": "first", "origin": "tuned", "latency_s": 0.5, "trace": "tilth-trace 1\n"}}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	added, err := l.Apply(machine, list, schedule.Strict, choices)
	if err != nil || added != 1 || choices[0].Origin != "tuned" || choices[0].LatencySeconds != 0.5 {
		t.Fatalf("%d added, %+v, %v", added, choices[0], err)
	}
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(path); err != nil || !strings.Contains(string(written), `"version": 2`) {
		t.Errorf("written %s, %v", written, err)
	}
}

// FuzzLock checks that any file is refused or gives a lock, and that applying the lock does not panic.
func FuzzLock(f *testing.F) {
	f.Add(`{"version": 1, "targets": {"m": {"d": {"task": "t", "origin": "tuned", "trace": "tilth-trace 1\n"}}}}`)
	f.Add(`{"version": 1, "targets": {"m": null}}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parse([]byte(text))
		if err != nil {
			return
		}
		list, choices := tasks(t)
		if _, err := l.Apply("m", list, schedule.Strict, choices); err == nil && !l.Has("m", list) {
			t.Error("a lock that was obeyed lacks tasks")
		}
	})
}
