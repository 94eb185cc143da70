package runner

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/array"
)

// floats returns values as bytes in memory.
func floats(values ...float32) (b []byte) {
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func doubles(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.NativeEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func halves(values ...uint16) (b []byte) {
	for _, v := range values {
		b = binary.NativeEndian.AppendUint16(b, v)
	}
	return b
}

func TestJudgeTellsRightFromWrong(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	gap := math.Float32frombits(poison)
	cases := map[string]struct {
		dtype     array.DType
		got, want []byte
		growth    float64
		message   string
	}{
		"equal":                  {array.Float32, floats(1, 2), floats(1, 2), 0, ""},
		"within the tolerance":   {array.Float32, floats(1, 2.0001), floats(1, 2), 0, ""},
		"beyond the tolerance":   {array.Float32, floats(1, 2.01), floats(1, 2), 0, "y[1] is 2.00999999, the reference says 2"},
		"within what it grows":   {array.Float32, floats(1, 2.01), floats(1, 2), 10, ""},
		"grows without bound":    {array.Float32, floats(1, 4000), floats(1, 2), math.Inf(1), "y[1] is 4000"},
		"grows beyond bounds":    {array.Float32, floats(1, 4.5), floats(1, 2), 1e6, "y[1] is 4.5"},
		"shrinks":                {array.Float32, floats(1, 2.0001), floats(1, 2), -5, ""},
		"NaN is NaN":             {array.Float32, floats(1, nan), floats(1, nan), 0, ""},
		"NaN is no number":       {array.Float32, floats(1, nan), floats(1, 2), 0, "y[1] is NaN"},
		"a number is no NaN":     {array.Float32, floats(1, 2), floats(1, nan), 0, "the reference says NaN"},
		"infinity":               {array.Float32, floats(1, inf), floats(1, inf), 0, ""},
		"the other infinity":     {array.Float32, floats(1, -inf), floats(1, inf), 0, "y[1] is -Inf"},
		"gaps":                   {array.Float32, floats(1, gap), floats(1, gap), 0, ""},
		"a gap that was written": {array.Float32, floats(1, 0), floats(1, gap), 0, "y[1] is 0"},
		"zeros":                  {array.Float32, floats(0, 0), floats(0, 0), 0, ""},
		"no zero":                {array.Float32, floats(0, 1e-30), floats(0, 0), 0, "y[1] is 1e-30"},
		"doubles":                {array.Float64, doubles(1, 2.01), doubles(1, 2), 0, "y[1] is 2.01"},
		"halves":                 {array.Float16, halves(0x3C00, 0x4000), halves(0x3C00, 0x4400), 0, "y[1] is 2, the reference says 4"},
		"small halves":           {array.Float16, halves(1, 0x8001), halves(1, 0x0001), 0, "y[1] is -5.96046448e-08"},
		"bfloat16":               {array.BFloat16, halves(0x3F80, 0x4000), halves(0x3F80, 0x4000), 0, ""},
		"integers":               {array.Int8, []byte{1, 255}, []byte{1, 254}, 1e3, "y[1] is -1, the reference says -2"},
		"direct sums are exact":  {array.Int8, []byte{1, 99}, []byte{1, 100}, 1, "y[1] is 99, the reference says 100"},
		"sums in floats":         {array.Int8, []byte{1, 99}, []byte{1, 100}, 10, ""},
		"sums too far away":      {array.Int8, []byte{1, 95}, []byte{1, 100}, 10, "y[1] is 95, the reference says 100"},
		"indices are exact":      {array.Int64, []byte{99, 7: 0}, []byte{100, 7: 0}, 1e3, "y[0] is 99, the reference says 100"},
		"equal integers":         {array.Int32, floats(1, 2), floats(1, 2), 0, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n := int64(len(c.want))
			w := &Workload{Args: []Arg{{Name: "x", Role: Input, DType: c.dtype}, {Name: "y", Elements: n / c.dtype.Bytes(), Bytes: n, DType: c.dtype, Role: Output,
				Tolerance: 1e-3}}}
			if err := w.Check(); err != nil {
				t.Fatal(err)
			}
			slot := func(b []byte) []byte { return append(b, make([]byte, int(w.SlotBytes())-len(b))...) }
			relative, message := w.Judge(slot(c.got), slot(c.want), c.growth)
			if (message == "") != (c.message == "") || !strings.Contains(message, c.message) || !(relative >= 0) {
				t.Errorf("got %q, relative error %v, want %q", message, relative, c.message)
			}
		})
	}
}

func TestEachOutputIsJudged(t *testing.T) {
	w := &Workload{Args: []Arg{{Name: "a", Elements: 1, Bytes: 4, DType: array.Int32, Role: Output}, {Name: "b", Elements: 2, Bytes: 8, DType: array.Int32, Role: Output}}}
	want, got := make([]byte, w.SlotBytes()), make([]byte, w.SlotBytes())
	if _, message := w.Judge(got, want, 0); message != "" {
		t.Error(message)
	}
	got[64+4] = 1
	if _, message := w.Judge(got, want, 0); !strings.HasPrefix(message, "b[1] is 1") {
		t.Error(message)
	}
}

// TestEachOutputHasItsTolerance checks that the tolerance of a 16-bit output is too large for a float32 one, and that
// no algorithm rounds results more often.
func TestEachOutputHasItsTolerance(t *testing.T) {
	half := func(tolerance, rounding float64) Arg {
		return Arg{Name: "a", Elements: 1, Bytes: 2, DType: array.BFloat16, Role: Output, Tolerance: tolerance, Rounding: rounding}
	}
	w := &Workload{Args: []Arg{half(1e-6, 0x1p-6), {Name: "b", Elements: 1, Bytes: 4, DType: array.Float32, Role: Output, Tolerance: 1e-6}}}
	slot := func(half uint16, full float32) []byte {
		b := append(halves(half), make([]byte, 62)...)
		return append(append(b, floats(full)...), make([]byte, 60)...)
	}
	for name, c := range map[string]struct {
		got     []byte
		growth  float64
		message string
	}{
		"equal":                           {slot(0x3F80, 1), 1, ""},
		"a neighbour in 16 bits":          {slot(0x3F81, 1), 1, ""},
		"as far off in float32":           {slot(0x3F80, 1.0078125), 1, "b[0] is 1.0078125"},
		"where an algorithm loses that":   {slot(0x3F80, 1.003), 1 << 12, ""},
		"which claims more than any does": {slot(0x3F80, 1.0078125), 1 << 13, "b[0] is 1.0078125"},
		"results are rounded once":        {slot(0x3F84, 1), 1 << 12, "a[0] is 1.03125"},
	} {
		if _, message := w.Judge(c.got, slot(0x3F80, 1), c.growth); (message == "") != (c.message == "") || !strings.HasPrefix(message, c.message) {
			t.Errorf("%s: got %q, want %q", name, message, c.message)
		}
	}
	w.Args[0] = half(1e6, 1e6)
	if _, message := w.Judge(slot(0, 1), slot(0x3F80, 1), 1); message == "" {
		t.Error("zero is right where a harness says that all is")
	}
}

// TestWorkloadIsCheckedBeforeMemoryIsAskedFor because a harness is not trusted.
func TestWorkloadIsCheckedBeforeMemoryIsAskedFor(t *testing.T) {
	good := Arg{Name: "y", Elements: 2, Bytes: 8, DType: array.Float32, Role: Output}
	edit := func(change func(*Arg)) []Arg {
		a := good
		change(&a)
		return []Arg{a}
	}
	for name, w := range map[string]*Workload{
		"no arguments":   {},
		"too many":       {Args: make([]Arg, maxArgs+1)},
		"no outputs":     {Args: edit(func(a *Arg) { a.Role = Input })},
		"other role":     {Args: edit(func(a *Arg) { a.Role = 3 })},
		"other type":     {Args: edit(func(a *Arg) { a.DType = 14 })},
		"negative":       {Args: edit(func(a *Arg) { a.Elements, a.Bytes = -1, -4 })},
		"huge":           {Args: edit(func(a *Arg) { a.Elements, a.Bytes = 1<<61, 1<<63-4 })},
		"other size":     {Args: edit(func(a *Arg) { a.Bytes = 4 })},
		"no tolerance":   {Args: edit(func(a *Arg) { a.Tolerance = math.NaN() })},
		"less than none": {Args: edit(func(a *Arg) { a.Rounding = -1 })},
	} {
		if err := w.Check(); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

// TestSharedMemoryCannotBeShrunk checks that other users of the memory cannot shrink it.
func TestSharedMemoryCannotBeShrunk(t *testing.T) {
	m, err := NewMemory()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Grow(4096); err != nil {
		t.Fatal(err)
	}
	if err := m.File.Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("its size became 0: %v", err)
	}
	if _, err := m.File.WriteAt([]byte("answer"), 64); err != nil || string(m.Slot(1, 64)[:6]) != "answer" {
		t.Errorf("got %q, %v", m.Slot(1, 64)[:6], err)
	}
	if err := cmp.Or(m.Grow(8192), m.Grow(64)); err != nil || len(m.Bytes()) != 8192 || string(m.Slot(1, 64)[:6]) != "answer" {
		t.Errorf("%v, %d bytes, %q", err, len(m.Bytes()), m.Slot(1, 64)[:6])
	}
	if err := m.Clear(); err != nil || !bytes.Equal(m.Bytes(), make([]byte, 8192)) {
		t.Errorf("%v, or something is left", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
