package profile

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
)

var (
	peak     = aot.Peak{FlopsPerSecond: 100e9, BytesPerSecond: 10e9}
	manifest = &aot.Manifest{
		Target: &target.Target{CPU: &target.CPU{Threads: 2}},
		Tasks: []aot.TaskInfo{
			{Name: "conv", Origin: "tuned", Flop: 2e9, Bytes: 1e6, Algorithms: []string{"F(4x4,3x3)"}, Multiplications: 0.25},
			{Name: "relu", Origin: "default", Flop: 1e6, Bytes: 4e6},
			{Name: "copy", Origin: "default", Bytes: 0},
		},
		Calls: []aot.CallInfo{{Name: "a", Task: 1}, {Name: "b", Task: 0}, {Name: "c", Task: 1}, {Name: "d", Task: 2}},
	}
)

func TestCallsAreComparedWithTheMachine(t *testing.T) {
	p := summarize(manifest, nil, []float64{0.001, 0.025, 0.002, 0}, peak)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	order := ""
	for _, c := range p.Calls {
		order += c.Call
	}
	if order != "bcad" {
		t.Errorf("calls in the order %s, want slowest first", order)
	}
	conv, relu := p.Calls[0], p.Calls[1]
	near("rate of conv", conv.FlopsPerSecond, 80e9)
	near("share of the peak", conv.PeakShare, 0.2)
	near("limit of conv", conv.LimitSeconds, 0.005)
	near("share of conv", conv.Share, 0.025/0.028)
	near("bytes a second of relu", relu.BytesPerSecond, 2e9)
	near("limit of relu", relu.LimitSeconds, 0.0004)
	near("total", p.Total.Seconds, 0.028)
	near("limit of all", p.Total.LimitSeconds, 0.0058)
	if conv.BoundBy != ByArithmetic || relu.BoundBy != ByMemory || p.Calls[3].BoundBy != "" || p.Total.BoundBy != ByArithmetic {
		t.Errorf("bound by %q, %q, %q, %q", conv.BoundBy, relu.BoundBy, p.Calls[3].BoundBy, p.Total.BoundBy)
	}
}

func TestProfileForPeople(t *testing.T) {
	var out strings.Builder
	if err := summarize(manifest, nil, []float64{0.001, 0.025, 0.002, 0}, peak).Write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for k, want := range map[int]string{
		1: "25.0 ms  89.3 %      1     80.0  20.0 %  5.00 ms  arithmetic         tuned     F(4x4,3x3)  conv  b",
		2: "3.00 ms  10.7 %      2    0.667   0.7 %   800 µs  memory, 2.67 GB/s  default   -           relu  c and 1 more",
		3: "-   0.0 %      1        -       -        -  -                  default   -           copy  d",
		5: "total 28.0 ms in 4 calls: 71.5 GFLOP/s, 17.9 % of the peak; at the machine's limits 5.80 ms",
		6: "machine, on 2 of its threads: 100 GFLOP/s of fused multiply-adds, 10.0 GB/s from memory",
	} {
		if !strings.HasPrefix(strings.TrimLeft(lines[k], " "), strings.TrimLeft(want, " ")) {
			t.Errorf("line %d is\n%s\nwant\n%s", k, lines[k], want)
		}
	}
}

// TestCallsThatWereNotNeededAreCounted checks that they are excluded from sums.
func TestCallsThatWereNotNeededAreCounted(t *testing.T) {
	var out strings.Builder
	if err := summarize(manifest, nil, []float64{0.001, -1, 0.002, -1}, peak).Write(&out); err != nil {
		t.Fatal(err)
	}
	if want := "total 3.00 ms in 2 calls (2 more were not needed): 0.667 GFLOP/s"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant %s", out.String(), want)
	}
}

// TestSumsOfIntegersHaveAPeakOfTheirOwn: a quantised product of 4 G operations with a float behind each of a million.
func TestSumsOfIntegersHaveAPeakOfTheirOwn(t *testing.T) {
	quantised := &aot.Manifest{
		Target: &target.Target{CPU: &target.CPU{Threads: 1}},
		Tasks:  []aot.TaskInfo{{Name: "qconv", Origin: "default", Flop: 1e6, IntegerOps: 4e9, Bytes: 1e6}},
		Calls:  []aot.CallInfo{{Name: "a"}},
	}
	for rate, want := range map[float64]string{400e9: "20.0 ms 100.0 % 1 200 50.0 %", 0: "20.0 ms 100.0 % 1 200 unknown"} {
		var out strings.Builder
		p := summarize(quantised, nil, []float64{0.020}, aot.Peak{FlopsPerSecond: 100e9, IntegersPerSecond: rate, BytesPerSecond: 10e9})
		if err := p.Write(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if got := strings.Join(strings.Fields(lines[1]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("with a peak of %g integers a second: %s, want %s ...", rate, got, want)
		}
		if !strings.Contains(lines[0], " GOP/s") || strings.Contains(out.String(), "400 GOP/s of those of integers") != (rate > 0) {
			t.Errorf("with a peak of %g integers a second:\n%s", rate, out.String())
		}
	}
}

func TestProfileOnAMachineThatCouldNotBeMeasured(t *testing.T) {
	p := summarize(manifest, nil, []float64{0.001, 0.025, 0.002, 0}, aot.Peak{})
	var out strings.Builder
	if err := p.Write(&out); err != nil || p.Total.LimitSeconds != 0 || p.Total.BoundBy != "" || strings.Contains(out.String(), "NaN") ||
		!strings.Contains(out.String(), "71.5 GFLOP/s, the peak is unknown; at the machine's limits that are known -") {
		t.Errorf("%v %+v\n%s", err, p.Total, out.String())
	}
}

// TestAlgorithmOfUnknownMultiplicationsHasNoPeak: packages of older versions name an algorithm without its
// multiplications, and those of the direct sum are not a limit.
func TestAlgorithmOfUnknownMultiplicationsHasNoPeak(t *testing.T) {
	older := *manifest
	older.Tasks = append([]aot.TaskInfo{}, manifest.Tasks...)
	older.Tasks[0].Multiplications = 0
	p := summarize(&older, nil, []float64{0.001, 0.010, 0.002, 0}, peak)
	conv := p.Calls[0]
	if conv.Call != "b" || conv.PeakShare != 0 || conv.BoundBy != "" || !conv.PeakUnknown || conv.LimitSeconds > conv.Seconds {
		t.Errorf("%+v", conv)
	}
}

// TestMemoryLimitThatIsBeatenIsNone: a model that fits into the caches took less than its memory limit.
func TestMemoryLimitThatIsBeatenIsNone(t *testing.T) {
	relu := summarize(manifest, nil, []float64{0.0001, 0.025, 0.0001, 0}, peak).Calls[1]
	if relu.Task != "relu" || relu.BoundBy != ByArithmetic || relu.LimitSeconds != 1e6/100e9 {
		t.Errorf("%+v", relu)
	}
}

// TestRateThatIsUnknownIsCalledSo: a product in a format of unknown rate has no share of the peak, and is not
// reported as memory bound.
func TestRateThatIsUnknownIsCalledSo(t *testing.T) {
	on := &aot.Manifest{
		Target: &target.Target{CPU: &target.CPU{Threads: 1}},
		Tasks:  []aot.TaskInfo{{Name: "dense", Origin: "tuned", Flop: 4e9, Bytes: 20e6, Matrices: "warpgroup bf16"}},
		Calls:  []aot.CallInfo{{Name: "a", Task: 0}},
	}
	for rate, want := range map[float64][]string{
		0: {
			"20.0 µs 80.0 % 1 200 unknown 1000 25.0 %", "kernels: 200 TFLOP/s, the peak is unknown; at the device's limits that are known 5.00 µs",
			"device: 50.0 TFLOP/s of fused multiply-adds, unknown of products of matrices in warpgroup bf16, 4000 GB/s",
		},
		800e12: {
			"20.0 µs 80.0 % 1 200 25.0 % 1000 25.0 %", "kernels: 200 TFLOP/s, 25.0 % of the peak; at the device's limits 5.00 µs",
			"device: 50.0 TFLOP/s of fused multiply-adds, 800 of products of matrices in warpgroup bf16, 4000 GB/s",
		},
	} {
		device := aot.Peak{FlopsPerSecond: 50e12, BytesPerSecond: 4e12, Matrices: map[string]float64{"bf16": 400e12, "warpgroup bf16": rate}}
		p := summarize(on, nil, []float64{20e-6}, device)
		p.onDevice(on, []aot.Launch{{Kernel: "k0", Seconds: 20e-6, Threads: 128, Registers: 90, Occupancy: 0.5}}, 25e-6, 30e-6)
		if c := p.Calls[0]; (c.BoundBy == ByArithmetic) != (rate > 0) || c.PeakUnknown != (rate == 0) {
			t.Errorf("with a rate of %g it is bound by %q", rate, c.BoundBy)
		}
		var out strings.Builder
		if err := p.Write(&out); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, line := range want {
			if !strings.Contains(text, line) {
				t.Errorf("with a rate of %g there is no %q in\n%s", rate, line, out.String())
			}
		}
	}
}

// TestProfileOfADevice checks the lines for launches and gaps, and the comparison with the peak of matrix
// instructions.
func TestProfileOfADevice(t *testing.T) {
	on := &aot.Manifest{
		Target: &target.Target{CPU: &target.CPU{Threads: 1}},
		Tasks: []aot.TaskInfo{
			{Name: "dense", Origin: "tuned", Flop: 4e9, Bytes: 20e6, Matrices: "bf16"}, {Name: "softmax", Origin: "default", Flop: 1e6, Bytes: 40e6},
		},
		Calls: []aot.CallInfo{{Name: "a", Task: 0}, {Name: "b", Task: 1}},
	}
	device := aot.Peak{FlopsPerSecond: 50e12, BytesPerSecond: 4e12, Matrices: map[string]float64{"bf16": 400e12, "tf32": 200e12}}
	p := summarize(on, nil, []float64{20e-6, 12.5e-6}, device)
	p.onDevice(on, []aot.Launch{
		{Call: 0, Kernel: "k0", Seconds: 18e-6, Threads: 128, Registers: 255, SpilledBytes: 16, Occupancy: 0.125}, {Call: 0, Kernel: "k0_1", Seconds: 2e-6, Registers: 32, Occupancy: 1},
		{Call: 1, Kernel: "k1", Seconds: 12.5e-6, Threads: 256, Registers: 40, Occupancy: 0.75},
	}, 50e-6, 100e-6)
	var out strings.Builder
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for k, want := range []string{
		"TIME SHARE CALLS TFLOP/s PEAK GB/s OF MEMORY LAUNCHES OCCUPANCY REGISTERS SCHEDULE ALGORITHM TASK NODES",
		"20.0 µs 40.0 % 1 200 50.0 % 1000 25.0 % 2 12.5 % 255 and 16 B tuned - dense a",
		"12.5 µs 25.0 % 1 0.0800 0.2 % 3200 80.0 % 1 75.0 % 40 default - softmax b",
		"17.5 µs 35.0 % between the 3 launches",
		"",
		"total 50.0 µs on the device: kernels 32.5 µs in 2 calls, launches and gaps 17.5 µs; copies of inputs and outputs 50.0 µs beside that",
		"kernels: 123 TFLOP/s, 30.8 % of the peak; at the device's limits 20.0 µs",
		"device: 50.0 TFLOP/s of fused multiply-adds, 400 of products of matrices in bf16, 4000 GB/s from and to memory",
	} {
		if got := strings.Join(strings.Fields(lines[k]), " "); got != want {
			t.Errorf("line %d is\n%s\nwant\n%s", k, got, want)
		}
	}
}
