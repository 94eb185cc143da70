package client

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// device returns a runner that offers a preset with some numbers of threads.
func device(t *testing.T, name, preset, rack string, threads ...int) *tilthv1.Agent {
	t.Helper()
	spec := &tilthv1.AgentSpec{Name: name, Labels: map[string]string{"rack": rack}}
	for _, n := range threads {
		machine, err := target.Parse(preset, n)
		if err != nil {
			t.Fatal(err)
		}
		spec.DeviceClasses = append(spec.DeviceClasses, &tilthv1.DeviceClass{Name: machine.DeviceClass(), Descriptor_: machine.Encode()})
	}
	return &tilthv1.Agent{Spec: spec}
}

func TestChooseDevice(t *testing.T) {
	board, other := device(t, "rack3/board", "arm64", "3", 1, 4), device(t, "rack3/other", "arm64", "4", 1, 4)
	server := device(t, "server", "x86-64-v3", "1", 1, 2)
	class := server.GetSpec().GetDeviceClasses()[0].GetName()
	for _, c := range []struct {
		name    string
		devices []*tilthv1.Agent
		key     string
		threads int
		arch    string
		want    int
		message string
	}{
		{"nobody", nil, "", 0, "", 0, "no device is there: start one with 'tilth runner'"},
		{"the only kind, on all its threads", []*tilthv1.Agent{board, other}, "", 0, target.ARM, 4, ""},
		{"on as many threads as asked for", []*tilthv1.Agent{board, other}, "", 1, target.ARM, 1, ""},
		{"several kinds", []*tilthv1.Agent{board, server}, "", 0, "", 0, "there are several kinds of devices: choose one with --device (see 'tilth devices list')"},
		{"by name", []*tilthv1.Agent{board, server}, "server", 0, target.X86, 2, ""},
		{"by class", []*tilthv1.Agent{board, server}, class, 0, target.X86, 1, ""},
		{"by label", []*tilthv1.Agent{board, server}, "rack=3", 0, target.ARM, 4, ""},
		{"by a label that no one has", []*tilthv1.Agent{board, server}, "rack=9", 0, "", 0, `no device is "rack=9": see 'tilth devices list'`},
		{"by a wrong name", []*tilthv1.Agent{board}, "bord", 0, "", 0, `no device is "bord": see 'tilth devices list'`},
		{"on threads that it does not offer", []*tilthv1.Agent{board}, "", 3, "", 0,
			"no such device offers 3 threads: see 'tilth devices show', or start its runner with --threads 3"},
	} {
		got, err := chooseDevice(c.devices, deviceRequest{key: c.key, threads: c.threads})
		if message := errorText(err); message != c.message {
			t.Errorf("%s: error %q, want %q", c.name, message, c.message)
		}
		if err == nil && (got.CPU.Arch != c.arch || got.CPU.Threads != c.want) {
			t.Errorf("%s: %s on %d threads, want %s on %d", c.name, got.CPU.Arch, got.CPU.Threads, c.arch, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNewestToolchain(t *testing.T) {
	board, err := target.Parse("arm64", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ offered, want string }{
		{"gcc-12.2.0", "gcc-12.2.0"},
		{"gcc-12.2.0 clang-9.0.1", "clang-9.0.1"},
		{"clang-9.0.1 clang-19.1.7 clang-19.1.10 clang-14.0.6", "clang-19.1.10"},
		{"clang-19.1.7 clang-19.1.7+ptxas-12.4.131", "clang-19.1.7"}, // no GPU
	} {
		if got, err := NewestToolchain(strings.Fields(c.offered), board); err != nil || got != c.want {
			t.Errorf("of %s: %s, %v; want %s", c.offered, got, err, c.want)
		}
	}
	if _, err := NewestToolchain(nil, board); errorText(err) != "no builder is there: start one with 'tilth builder'" {
		t.Errorf("without builders: %v", err)
	}
}

// TestListDevicesSkipsAnUnparsableDevice is a regression test: one runner with an unknown description prevented all
// tuning.
func TestListDevicesSkipsAnUnparsableDevice(t *testing.T) {
	board, bad := device(t, "board", "arm64", "3", 4), device(t, "bad", "x86-64-v3", "3", 4)
	bad.GetSpec().GetDeviceClasses()[0].Descriptor_ = []byte("{")
	bad.Spec.Capabilities, board.Spec.Capabilities = []string{wire.RunsPackages}, []string{wire.RunsPackages}
	if got, err := chooseDevice([]*tilthv1.Agent{bad, board}, deviceRequest{key: ""}); err != nil || got.CPU.Arch != target.ARM {
		t.Errorf("chose %v, %v", got, err)
	}
	if _, err := chooseDevice([]*tilthv1.Agent{bad, board}, deviceRequest{key: "bad"}); err == nil || !strings.Contains(err.Error(), "device bad: class") {
		t.Errorf("asked for it by name: %v", err)
	}
	want, err := target.Parse("arm64", 4)
	if err != nil {
		t.Fatal(err)
	}
	if class, _, err := chooseRunner([]*tilthv1.Agent{bad, board}, "", want); err != nil || class != want.DeviceClass() {
		t.Errorf("packages run on %q, %v", class, err)
	}
}
