package tilth_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tilth-dev/tilth"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
)

// compile writes a model's package for this machine.
func compile(ctx context.Context, m *onnx.Model, o frontend.Options, file string) error {
	p, err := frontend.Import(m, o)
	if err != nil {
		return err
	}
	tc, err := toolchain.Find(ctx, "")
	if err != nil {
		return err
	}
	machine, err := target.Native(0)
	if err != nil {
		return err
	}
	choices, err := bestschedule.Choose(ctx, p, machine, schedule.Default, bestschedule.Sources{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	objects, err := toolchaintest.Objects()
	if err != nil {
		return err
	}
	_, err = aot.Compile(ctx, p, aot.Options{Target: machine, Toolchain: tc, Choices: choices, Parallel: 2, Objects: objects, Output: file})
	return err
}

// loaded returns a model of up to four rows of three numbers. Its outputs are the doubled numbers and the indices of
// positive ones.
func loaded(t *testing.T) *tilth.Model {
	t.Helper()
	m := modeltest.New().Input("x", 4, 3).Input("k", 1).Known("zero", array.FromFloat32([]float32{0})).
		Node("twice = Add x x").Node("scaled = Mul twice k").Output("scaled")
	m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "rows"}
	file := filepath.Join(t.TempDir(), "model.tar")
	if err := compile(t.Context(), m, frontend.Options{Open: map[string]frontend.Bounds{"rows": {Min: 1, Max: 4}}}, file); err != nil {
		t.Fatal(err)
	}
	model, err := tilth.LoadWith(file, tilth.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return model
}

func TestModelDescribesItself(t *testing.T) {
	m := loaded(t)
	var texts []string
	for _, s := range append(m.Inputs(), m.Outputs()...) {
		texts = append(texts, s.Name+" "+s.String())
	}
	if want := []string{"x f32[rows 3]", "k f32[1]", "scaled f32[rows 3]"}; !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
	if x := m.Inputs()[0]; x.Type != tilth.Float32 || !slices.Equal(x.Shape, []int64{4, 3}) || !slices.Equal(x.Varying, []int{0}) || x.Kept {
		t.Errorf("x is %+v", x)
	}
	if e := m.Extents(); !slices.Equal(e, []tilth.Extent{{Name: "rows", Least: 1, Most: 4, Step: 1}}) {
		t.Errorf("extents are %v", e)
	}
	if m.Decoder() || m.Threads() != 1 {
		t.Errorf("decoder: %v, threads: %d", m.Decoder(), m.Threads())
	}
}

// TestGoroutinesMayShareAModel checks that each goroutine gets the outputs of its own inputs.
func TestGoroutinesMayShareAModel(t *testing.T) {
	m := loaded(t)
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for range 20 {
				rows := int64(1 + g%4)
				x := slices.Repeat([]float32{float32(g)}, int(3*rows))
				outputs, err := m.Run(t.Context(), []tilth.Tensor{tilth.NewTensor("k", []float32{3}, 1), tilth.NewTensor("x", x, rows, 3)})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := tilth.Values[float32](outputs[0])
				if want := slices.Repeat([]float32{float32(6 * g)}, len(x)); err != nil || !slices.Equal(got, want) || outputs[0].Shape[0] != rows {
					t.Errorf("got %v of %v, %v; want %v", got, outputs[0].Shape, err, want)
				}
			}
		})
	}
	wait.Wait()
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	m := loaded(t)
	k, x := tilth.NewTensor("k", []float32{1}, 1), tilth.NewTensor("x", make([]float32, 3), 1, 3)
	for want, inputs := range map[string][]tilth.Tensor{
		`input "x" is given twice`:    {x, k, x},
		`"k" (f32[1]) is missing`:     {x},
		`has no input "y"`:            {x, k, tilth.NewTensor("y", []bool{true}, 1)},
		`input "k" is i64[1], not`:    {x, tilth.NewTensor("k", []int64{1}, 1)},
		`rows`:                        {k, tilth.NewTensor("x", make([]float32, 15), 5, 3)},
		`needs 12 bytes but has 8`:    {k, tilth.NewTensor("x", make([]float32, 2), 1, 3)},
		`input "k" is invalid[1], no`: {x, {Name: "k", Shape: []int64{1}}},
	} {
		if _, err := m.Run(t.Context(), inputs); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := m.Decode(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no output continues an input") {
		t.Errorf("decoding: %v", err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("enough"))
	if _, err := m.Run(ended, []tilth.Tensor{x, k}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("with a context that has ended: %v", err)
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	if _, err := m.Run(t.Context(), []tilth.Tensor{x, k}); !errors.Is(err, tilth.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := tilth.Load(filepath.Join(t.TempDir(), "none.tar")); err == nil || !strings.Contains(err.Error(), "none.tar") {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := tilth.LoadWith("any.tar", tilth.Options{Threads: -1}); err == nil {
		t.Error("less than no threads")
	}
}

func TestTensorsHoldValuesOfTheirType(t *testing.T) {
	if got, err := tilth.Values[int16](tilth.NewTensor("", []int16{-2, 3}, 2)); err != nil || !slices.Equal(got, []int16{-2, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := tilth.Values[bool](tilth.NewTensor("", []bool{true, false})); err == nil {
		t.Errorf("two values of a scalar: %v", got)
	}
	if _, err := tilth.Values[int32](tilth.NewTensor("a", []int64{1}, 1)); err == nil || !strings.Contains(err.Error(), `tensor "a" is of i64, not of i32`) {
		t.Errorf("another type: %v", err)
	}
	half := tilth.Tensor{Name: "h", Type: tilth.BFloat16, Shape: []int64{2}, Data: []byte{0x80, 0x3f, 0, 0xc0}}
	if got, err := half.Float32s(); err != nil || !slices.Equal(got, []float32{1, -2}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := (tilth.Tensor{Type: 99, Shape: []int64{1}}).Float32s(); err == nil {
		t.Error("a type that is none")
	}
	if tilth.Uint16.Bytes() != 2 || tilth.Uint16.String() != "u16" || tilth.Type(0).Bytes() != 0 {
		t.Error("types do not know their sizes and names")
	}
}
