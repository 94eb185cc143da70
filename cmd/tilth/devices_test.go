package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// startDevice returns a farm of a tracker and a runner.
func startDevice(t *testing.T) *farmUnderTest {
	dir, err := os.MkdirTemp("", "farm") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	f := &farmUnderTest{t: t, dir: dir, tracker: "unix:" + filepath.Join(dir, "sock")}
	f.more = map[string][]string{"runner": {"--slots", "1"}} // further work waits in the tracker
	f.begin("tracker", "runner")
	return f
}

// awaitDevice waits until the runner has joined.
func (f *farmUnderTest) awaitDevice(ctx context.Context) {
	f.until(ctx, "the runner has not joined", func() bool {
		_, err := f.client.Device(ctx, "test/runner")
		return err == nil
	})
}

// device runs a command about the device and decodes its output.
func (f *farmUnderTest) device(ctx context.Context, command string, flags ...string) (row deviceRow) {
	f.t.Helper()
	p := f.tilth(ctx, append([]string{"devices", command, "test/runner", "--tracker", f.tracker, "--json"}, flags...)...)
	p.mustRun()
	if err := json.Unmarshal(p.stdout.Bytes(), &row); err != nil {
		f.t.Fatalf("%v: %s", err, p.stdout.String())
	}
	return row
}

func TestDevicesAreCordonedDrainedAndShown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	f.awaitDevice(ctx)
	if d := f.device(ctx, "cordon", "--for", "1h", "--reason", "a look at the fan"); d.DeviceState != "cordoned" || d.Cordon.Until == "" || d.Cordon.By != owner() {
		t.Errorf("cordoned it is %+v", d)
	}
	f.restart("tracker")
	f.awaitDevice(ctx)
	list := f.tilth(ctx, "devices", "list", "--tracker", f.tracker)
	list.mustRun()
	if !strings.Contains(list.stdout.String(), "cordoned until 20") {
		t.Errorf("the list is\n%s", list.stdout.String())
	}
	if d := f.device(ctx, "uncordon"); d.DeviceState != "ready" || d.Cordon != nil {
		t.Errorf("uncordoned it is %+v", d)
	}
	if d := f.device(ctx, "drain", "--reason", "new kernel"); d.DeviceState != "cordoned" || d.Cordon.Until != "" {
		t.Errorf("drained it is %+v", d)
	}
	show := f.tilth(ctx, "devices", "show", "test/runner", "--tracker", f.tracker)
	show.mustRun()
	for _, want := range []string{"state:    cordoned", "a look at the fan", "new kernel", "CLASS"} {
		if !strings.Contains(show.stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, show.stdout.String())
		}
	}
	if d := f.device(ctx, "show"); len(d.History) != 3 {
		t.Errorf("the history is %+v", d.History)
	}
}

// TestRunnersDeviceIsCalibratedAndShown runs the real kernels when the runner joins.
func TestRunnersDeviceIsCalibratedAndShown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	f.awaitDevice(ctx)
	f.until(ctx, "no calibration was reported", func() bool { return f.device(ctx, "show").Calibration != nil })
	show := f.tilth(ctx, "devices", "show", "test/runner", "--tracker", f.tracker)
	show.mustRun()
	for _, want := range []string{"CALIBRATION", "last", "reference"} {
		if !strings.Contains(show.stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, show.stdout.String())
		}
	}
	if d := f.device(ctx, "recalibrate", "--reason", "new fan"); d.DeviceState != "ready" || d.Calibration != nil && d.Calibration.Reference != nil {
		t.Errorf("recalibrated it is %+v", d)
	}
}

// TestDeviceCooldownIsShown uses a runner whose harness cannot start.
func TestDeviceCooldownIsShown(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes until its device fails often enough")
	}
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"runner": {"--emulator", "/bin/false"}}
	f.launchAll()
	f.awaitAgents(ctx)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.tilth(ctx, "jobs", "submit", model, "--tracker", f.tracker, "--threads", "1", "--tasks", "0-2").mustRun()
	f.until(ctx, "the device does not rest", func() bool {
		d, err := f.client.Device(ctx, "test/runner")
		return err == nil && d.GetAgent().GetRestingUntil() != nil
	})
	d := f.device(ctx, "show")
	if !strings.Contains(d.Cooldown.Reason, "leases in a row failed, the last: ") || d.Cooldown.Until == "" {
		t.Errorf("it rests: %+v", d.Cooldown)
	}
	show := f.tilth(ctx, "devices", "show", "test/runner", "--tracker", f.tracker)
	show.mustRun()
	if !strings.Contains(show.stdout.String(), "rest:     until 20") {
		t.Errorf("no rest in\n%s", show.stdout.String())
	}
	f.until(ctx, "the list shows no rest", func() bool { // after a cooldown, until it fails again
		list := f.tilth(ctx, "devices", "list", "--tracker", f.tracker)
		list.mustRun()
		return strings.Contains(list.stdout.String(), "idle, cooldown until 20")
	})
}

func TestOutageIsShownWithTheDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: waits until a farm of processes has been silent for 15 s")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"tracker": {"--lease-timeout", "15s", "--grace", "15s"}}
	f.launchAll()
	f.awaitAgents(ctx)
	if d := f.device(ctx, "show"); d.Outage != nil {
		t.Errorf("an outage before there is one: %+v", d.Outage)
	}
	for _, agent := range []string{"tuner", "builder", "runner"} {
		f.kill(agent)
	}
	f.until(ctx, "no outage is noticed", func() bool {
		outage, err := f.client.Outage(ctx)
		return err == nil && outage != nil
	})
	if d := f.device(ctx, "show"); d.Outage == nil || d.Outage.Silent != 3 || d.Outage.Agents != 3 {
		t.Errorf("the outage is %+v", d.Outage)
	}
	for command, want := range map[string]string{"list": "\n\n3 of 3 agents fell silent at 20", "show": "outage:   3 of 3 agents fell silent at 20"} {
		args := []string{"devices", command, "--tracker", f.tracker}
		if command == "show" {
			args = append(args, "test/runner")
		}
		p := f.tilth(ctx, args...)
		p.mustRun()
		if !strings.Contains(p.stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, p.stdout.String())
		}
	}
}

func TestDevicesMeterIsShown(t *testing.T) {
	row := &calibrationRow{}
	row.surround(&tilthv1.Surroundings{Power: []*tilthv1.Power{{Meter: "powercap", Watts: 35.24}, {Meter: "ina226"}}})
	var out strings.Builder
	if err := row.writeSurroundings(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`energy meter powercap +35\.2 W`, `energy meter ina226 +-`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}
