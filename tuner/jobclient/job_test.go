package jobclient

import (
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/records"
)

func tasks(t *testing.T) []Task {
	t.Helper()
	m, err := modelzoo.Build("mlp", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Join(Model{Tasks: p.Tasks, Weight: 1})
}

func TestSelect(t *testing.T) {
	all := tasks(t) // dense+relu, dense+relu, dense, softmax
	for _, c := range []struct{ selection, want, message string }{
		{"", "0 1 2 3", ""},
		{"2", "2", ""},
		{"3,0", "0 3", ""},
		{"1-2", "1 2", ""},
		{"dense", "0 1 2", ""},
		{"relu, 3", "0 1 3", ""},
		{"9", "", `tasks "9": no task is "9": see 'tilth tasks MODEL'`},
		{"conv", "", `tasks "conv": no task is "conv": see 'tilth tasks MODEL'`},
		{"0,,1", "", `tasks "0,,1": a part is empty: separate numbers, ranges and names with single commas`},
		{"2-1", "", `tasks "2-1": "2-1" is not a range: write the lower number, a dash, the higher`},
	} {
		got, err := Select(all, c.selection)
		if message := text(err); message != c.message {
			t.Errorf("%q: error %q, want %q", c.selection, message, c.message)
		}
		var picked []string
		for _, task := range got {
			picked = append(picked, string(rune('0'+task.Index)))
		}
		if strings.Join(picked, " ") != c.want {
			t.Errorf("%q picks %v, want %s", c.selection, picked, c.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSpecStandsByItself(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 2)
	if err != nil {
		t.Fatal(err)
	}
	machine = machine.WithToolchain("clang-19.1.7")
	spec := NewSpec(tasks(t), Options{Name: "mlp", Target: machine, Trials: 7, Time: time.Minute, Tuner: "ga"})
	if spec.GetBudget().GetTrials() != 7 || spec.GetBudget().GetTime().AsDuration() != time.Minute {
		t.Errorf("budget is %v", spec.GetBudget())
	}
	if got := spec.GetTarget(); got.GetFingerprint() != machine.Fingerprint() || got.GetToolchain() != "clang-19.1.7" ||
		got.GetDeviceClass() != machine.DeviceClass() {
		t.Errorf("target is %v", got)
	}
	for _, task := range spec.GetTasks() {
		if records.Digest(task.GetWorkload()) != task.GetWorkloadDigest() {
			t.Errorf("task %s: the digest is not that of the workload", task.GetName())
		}
	}
	for i, r := range References(spec) {
		if !records.ValidDigest(r.DefaultDigest) || r.PeakSeconds != 0 {
			t.Errorf("task %d has the references %+v, want a default schedule and no limits", i, r)
		}
	}
	rates := roofline.Rates{FlopPerSecond: 1e9, Stores: []roofline.Store{{Name: "memory", Bytes: 1 << 40, BytesPerSecond: 1e9}}}
	spec = NewSpec(tasks(t), Options{Name: "mlp", Target: machine, Trials: 7, Tuner: "ga", Machine: rates.Encode()})
	for i, r := range References(spec) {
		task := spec.GetTasks()[i]
		if r.PeakSeconds != task.GetFlop()/1e9 || !(r.ByteSeconds > 0) || task.GetLeastSeconds() < r.PeakSeconds/8 || task.GetLeastSeconds() >= r.PeakSeconds {
			t.Errorf("task %d has the limits %+v and the least latency %v", i, r, task.GetLeastSeconds())
		}
	}
}
