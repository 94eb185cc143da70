package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startDevice is a farm of a tracker and a runner.
func startDevice(t *testing.T) *farmUnderTest {
	dir, err := os.MkdirTemp("", "farm") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	f := &farmUnderTest{t: t, dir: dir, tracker: "unix:" + filepath.Join(dir, "sock")}
	f.begin("tracker", "runner")
	return f
}

// awaitDevice returns when the runner has joined.
func (f *farmUnderTest) awaitDevice(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := f.client.Device(ctx, "test/runner"); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatal("the runner has not joined")
		}
	}
}

// device runs a command about the device and reads what it prints.
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

// TestARunnersDeviceIsCalibratedAndShown by the real kernels, at joining.
func TestARunnersDeviceIsCalibratedAndShown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startDevice(t)
	f.awaitDevice(ctx)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for f.device(ctx, "show").Calibration == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("no calibration was reported")
		}
	}
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
