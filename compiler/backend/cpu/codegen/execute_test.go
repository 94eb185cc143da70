package codegen

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain/toolchaintest"
)

//go:embed testdata/driver.c
var driver string

// runLimit bounds a compilation or run of a batch: sanitizers take seconds on a loaded machine, a hung kernel for
// ever.
const runLimit = 5 * time.Minute

// testCase is a schedule with the data to run it on.
type testCase struct {
	workload *expr.Workload
	schedule *schedule.Schedule
	workers  int
	args     []*array.Array
}

// GoString is short because a failing property shows all cases of its batch; the one that failed is told with its
// text.
func (c testCase) GoString() string { return fmt.Sprintf("case of %d stages", len(c.workload.Stages)) }

// text is the form of the files in testdata/schedules.
func (c testCase) text() string {
	return fmt.Sprintf("%s%sworkers %d\n", c.workload.Text(), c.schedule.Trace(), c.workers)
}

// mode is one way to compile and run kernels.
type mode struct {
	name     string
	target   string
	features []string // beside those of the target
	compiler string
	flags    []string
	// emulator runs the program when this machine cannot.
	emulator string
}

var modes = []mode{
	{name: "avx512", target: "x86-64-v4", compiler: "clang-19", flags: []string{"-O2"}},
	{name: "avx2", target: "x86-64-v3", compiler: "clang-19", flags: []string{"-O1"}},
	{name: "gcc", target: "x86-64-v3", compiler: "gcc", flags: []string{"-O1"}},
	{name: "neon", target: "arm64", compiler: "clang-19", flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"},
	{name: "sanitized", target: "x86-64-v4", compiler: "clang-19", flags: []string{"-O1", "-g1", "-fsanitize=address,undefined,float-cast-overflow",
		"-fno-sanitize-recover=undefined,float-cast-overflow", "-fno-sanitize=alignment", "-ftrivial-auto-var-init=pattern"}},
}

func (m mode) description(t testing.TB) *target.Target {
	d, err := target.Parse(m.target, 1)
	if err != nil {
		t.Fatal(err)
	}
	d.CPU.Features = slices.Sorted(slices.Values(slices.Concat(d.CPU.Features, m.features)))
	return d
}

// source is the translation unit of the cases, and the numbers of those whose schedules cannot be lowered with the
// reason.
func (m mode) source(t testing.TB, cases []testCase) (text string, refused map[int]error) {
	at := 0
	u, refused := NewUnit(m.description(t)), map[int]error{}
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("%v in case\n%s", r, cases[at].text()))
		}
	}()
	var table []string
	for k, c := range cases {
		at = k
		symbol := fmt.Sprintf("k%d", k)
		if _, err := u.AddWithPacks(symbol, symbol, c.schedule); err != nil {
			refused[k] = err
			symbol = ""
		}
		table = append(table, symbol)
	}
	for k, symbol := range table {
		table[k] = "&" + symbol
		if symbol == "" {
			table[k] = "0"
		}
	}
	return fmt.Sprintf("%s\nconst struct tilth_kernel *const test_kernels[] = {%s};\n%s", u.Source(), strings.Join(table, ", "), driver), refused
}

// execute compiles the cases and runs those that can be lowered. The error tells what went wrong and for which case
// (-1: all).
func (m mode) execute(t testing.TB, cases []testCase) (outputs [][]*array.Array, refused map[int]error, at int, err error) {
	text, refused := m.source(t, cases)
	program, err := m.compile(t, text)
	if err != nil {
		return nil, refused, -1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	if m.emulator != "" {
		cmd = exec.CommandContext(ctx, m.emulator, program)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(encodeCases(cases, refused)), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, refused, lastCase(stderr.String(), refused), fmt.Errorf("%w\n%s", err, tail(stderr.String()))
	}
	return decodeOutputs(cases, refused, stdout.Bytes()), refused, 0, nil
}

// runsHere reports whether this machine, or an emulator on it, has the target's instructions.
func runsHere(t testing.TB, d *target.Target) bool {
	native, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	return d.CPU.Arch != native.CPU.Arch || d.RunsOn(native) == nil
}

func (m mode) compile(t testing.TB, text string) (program string, err error) {
	d := m.description(t)
	if !runsHere(t, d) {
		// What the code generator decides for 64-byte vectors is still tested; the compiler makes two halves of each.
		d = mode{target: "x86-64-v3"}.description(t)
	}
	flags := d.CPU.ClangFlags()
	if m.compiler == "gcc" {
		flags = d.CPU.GCCFlags()
	}
	flags = append(flags, "-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-w")
	return toolchaintest.Program(t, m.compiler, append(flags, m.flags...), text)
}

func encodeCases(cases []testCase, refused map[int]error) []byte {
	var b []byte
	put := func(v int) { b = binary.LittleEndian.AppendUint64(b, uint64(v)) }
	put(len(cases) - len(refused))
	for k, c := range cases {
		if refused[k] != nil {
			continue
		}
		put(k)
		put(c.workers)
		put(len(c.args) + len(c.workload.Outputs))
		for k, a := range c.args {
			data := spread(c.workload.Args()[k], a)
			put(len(data))
			put(0)
			b = append(b, data...)
		}
		for _, o := range c.workload.Outputs {
			put(int(o.SpanElements() * o.DType.Bytes()))
			put(1)
		}
	}
	return b
}

func decodeOutputs(cases []testCase, refused map[int]error, data []byte) [][]*array.Array {
	outputs := make([][]*array.Array, len(cases))
	for k, c := range cases {
		if refused[k] != nil {
			continue
		}
		for _, o := range c.workload.Outputs {
			span := o.SpanElements() * o.DType.Bytes()
			outputs[k] = append(outputs[k], collect(o, data[:span]))
			data = data[span:]
		}
	}
	return outputs
}

// spread is an argument's memory: its elements at the tensor's strides, NaN between them.
func spread(t *expr.Tensor, a *array.Array) []byte {
	data := bytes.Repeat([]byte{0xff}, int(t.SpanElements()*t.DType.Bytes()))
	array.CopyStrided(t.DType, t.Shape, array.Strided{Data: data, Strides: t.MemoryStrides()},
		array.Strided{Data: a.Data, Strides: expr.RowMajorStrides(t.Shape)})
	return data
}

// collect takes a tensor's elements out of its memory; where a gap was written, the array that comes back is of no
// size.
func collect(t *expr.Tensor, data []byte) *array.Array {
	a := array.New(t.DType, t.Shape...)
	array.CopyStrided(t.DType, t.Shape, array.Strided{Data: a.Data, Strides: expr.RowMajorStrides(t.Shape)},
		array.Strided{Data: data, Strides: t.MemoryStrides()})
	if !bytes.Equal(data, spread(t, a)) {
		return array.New(t.DType, 0)
	}
	return a
}

// lastCase is the case that the driver named last.
func lastCase(stderr string, refused map[int]error) int {
	ran := strings.Count("\n"+stderr, "\ncase ") - 1
	for k := 0; ; k++ {
		if refused[k] != nil {
			continue
		}
		if ran--; ran < 0 {
			return k
		}
	}
}

func tail(s string) string {
	lines := strings.Split(s, "\n")
	for k, line := range lines {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "runtime error") {
			return strings.Join(lines[k:min(len(lines), k+12)], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// difference says where got is not want, within a tolerance relative to the largest value (or to one, when all are
// smaller: sums that cancel keep the rounding errors of their terms); empty when they agree.
func difference(got, want *array.Array, tolerance float64) string {
	if got.Len() != want.Len() {
		return "the gaps between the elements of an output were written"
	}
	scale := 1.0
	for i := range want.Len() {
		if v := math.Abs(want.Float(i)); !math.IsInf(v, 0) && v > scale {
			scale = v
		}
	}
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		same := g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= tolerance*scale
		if want.DType.IsInt() || want.DType == array.Bool {
			same = got.Int(i) == want.Int(i)
		}
		if !same {
			return fmt.Sprintf("element %d of %v%v is %v, not %v", i, want.DType, want.Shape, g, w)
		}
	}
	return ""
}
