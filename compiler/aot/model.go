package aot

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// Model is a loaded package. It is not safe for concurrent use; load it again for another goroutine.
type Model struct {
	manifest *Manifest
	api      *capi
	handle   uintptr
	inputs   [][]byte
	outputs  [][]byte
	// extents holds the named extents of the current inputs.
	extents map[string]int64
	// executed is set after an execution on the current inputs.
	executed bool
}

// openModel starts a model and checks that its code matches its manifest.
func openModel(path string, manifest *Manifest, api *capi, weightsOffset int64, threads Threads) (*Model, error) {
	if int(api.inputCount()) != len(manifest.Inputs) || int(api.outputCount()) != len(manifest.Outputs) || int(api.callCount()) != len(manifest.Calls) {
		err := fmt.Errorf("%s and %s do not belong together; compile the model again", objectName, manifestName)
		return nil, errors.Join(err, api.unload())
	}
	if api.outputShape == nil && slices.ContainsFunc(manifest.Outputs, func(t Tensor) bool { return len(t.OpenAxes) > 0 }) {
		err := fmt.Errorf("%s does not export tilth_output_shape, which its outputs need; compile the model again", objectName)
		return nil, errors.Join(err, api.unload())
	}
	handle, err := api.start(path, weightsOffset, threads)
	if err != nil {
		return nil, errors.Join(err, api.unload())
	}
	m := &Model{manifest: manifest, api: api, handle: handle}
	if m.inputs, err = buffers(manifest.Inputs, api.inputTensor, func(k int32) *byte { return api.input(handle, k) }); err == nil {
		m.outputs, err = buffers(manifest.Outputs, api.outputTensor, func(k int32) *byte { return api.output(handle, k) })
	}
	if err == nil {
		err = m.checkExtents()
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// buffers returns the model's own memory for its inputs or outputs.
func buffers(tensors []Tensor, describe func(int32) *ctensor, at func(int32) *byte) ([][]byte, error) {
	list := make([][]byte, len(tensors))
	for k, t := range tensors {
		bytes := array.Elements(t.Shape) * t.Type().Bytes()
		if describe(int32(k)).bytes != bytes {
			return nil, fmt.Errorf("%s and %s differ on the size of %q; compile the model again", objectName, manifestName, t.Name)
		}
		list[k] = unsafe.Slice(at(int32(k)), bytes)
	}
	return list, nil
}

// Manifest returns the package's manifest. It must not be modified.
func (m *Model) Manifest() *Manifest { return m.manifest }

// SetInputs copies the inputs into the model, where they stay until they are set again. Every input must be
// present, with its type and shape.
func (m *Model) SetInputs(inputs map[string]*array.Array) error {
	return m.set(inputs, shapesOf(inputs))
}

// set copies inputs into the model; inputs with a shape that are not given stay unchanged.
func (m *Model) set(inputs map[string]*array.Array, shapes map[string][]int64) error {
	for name := range inputs {
		if !slices.ContainsFunc(m.manifest.Inputs, func(t Tensor) bool { return t.Name == name }) {
			return fmt.Errorf("model %s has no input %q; its inputs are %s", m.manifest.Model, name, describe(m.manifest.Inputs))
		}
	}
	extents, err := m.manifest.ExtentsOf(shapes)
	if err != nil {
		return fmt.Errorf("model %s: %w", m.manifest.Model, err)
	}
	stays := func(t Tensor) bool { return inputs[t.Name] == nil && shapes[t.Name] != nil }
	for _, t := range m.manifest.Inputs {
		if stays(t) {
			continue
		}
		if err := t.accepts(inputs[t.Name], extents); err != nil {
			return fmt.Errorf("model %s: %w", m.manifest.Model, err)
		}
	}
	m.executed = false
	for k, t := range m.manifest.Inputs {
		if !stays(t) {
			inputs[t.Name].CopyToCorner(m.inputs[k], t.Shape)
		}
	}
	return m.setExtents(extents)
}

func shapesOf(inputs map[string]*array.Array) map[string][]int64 {
	shapes := map[string][]int64{}
	for name, a := range inputs {
		if a != nil {
			shapes[name] = a.Shape
		}
	}
	return shapes
}

func (t Tensor) accepts(a *array.Array, extents map[string]int64) error {
	switch {
	case a == nil:
		return fmt.Errorf("input %q (%v) is missing", t.Name, t)
	case a.DType.String() != t.DType:
		return fmt.Errorf("input %q is %v%v, not %v: convert it, for example by numpy's astype", t.Name, a.DType, a.Shape, t)
	case !slices.Equal(a.Shape, t.ShapeWith(extents)):
		return fmt.Errorf("input %q is %v%v, not %v", t.Name, a.DType, a.Shape, t)
	}
	if err := a.Check(); err != nil {
		return fmt.Errorf("input %q: %w", t.Name, err)
	}
	return nil
}

// String returns the type and the shape, e.g. "f32[1 3 224 224]"; an open axis has its range, as in "i64[0..6 3]".
func (t Tensor) String() string {
	words := make([]string, len(t.Shape))
	for k, e := range t.Shape {
		words[k] = fmt.Sprint(e)
		if slices.Contains(t.OpenAxes, k) {
			words[k] = fmt.Sprint("0..", e)
		}
	}
	for k, v := range t.Varying {
		if first := slices.IndexFunc(t.Varying, func(other Varying) bool { return other.Axis == v.Axis }); first < k {
			words[v.Axis] += "+" + v.String()
			continue
		}
		words[v.Axis] = v.String()
	}
	return fmt.Sprintf("%s[%s]", t.DType, strings.Join(words, " "))
}

func describe(tensors []Tensor) string {
	return humanize.Join(tensors, ", ", func(t Tensor) string { return fmt.Sprintf("%q (%v)", t.Name, t) })
}

// Execute runs the model once on the current inputs. An error names an input with an index out of range or comes from
// the device; outputs are then invalid.
func (m *Model) Execute() error { return m.watched(func() { m.api.run(m.handle) }) }

// watched calls run, which runs the model, and returns the thread-local error.
func (m *Model) watched(run func()) error {
	m.executed = true
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	run()
	if message := m.api.lastError(); message != "" {
		return fmt.Errorf("running the model: %s", message)
	}
	return nil
}

// Outputs copies the results of the last execution.
func (m *Model) Outputs() map[string]*array.Array {
	outputs := map[string]*array.Array{}
	for k, t := range m.manifest.Outputs {
		outputs[t.Name] = m.output(k)
	}
	return outputs
}

// Output copies a named result of the last execution; nil if none exists.
func (m *Model) Output(name string) *array.Array {
	k := slices.IndexFunc(m.manifest.Outputs, func(t Tensor) bool { return t.Name == name })
	if k < 0 {
		return nil
	}
	return m.output(k)
}

func (m *Model) output(k int) *array.Array {
	t := m.manifest.Outputs[k]
	whole := &array.Array{DType: t.Type(), Shape: slices.Clone(t.Shape), Data: m.outputs[k]}
	a := whole.Corner(t.ShapeWith(m.extents))
	for _, axis := range t.OpenAxes {
		a = a.Head(axis, m.extent(k, axis))
	}
	if a == whole {
		a.Data = slices.Clone(a.Data)
	}
	return a
}

// extent returns an output axis's extent after the last execution.
func (m *Model) extent(output, axis int) int64 {
	shape := slices.Clone(m.manifest.Outputs[output].Shape)
	m.api.outputShape(m.handle, int32(output), &shape[0])
	return shape[axis]
}

// Run sets the inputs, executes the model once and returns its outputs, all by name.
func (m *Model) Run(inputs map[string]*array.Array) (map[string]*array.Array, error) {
	if err := m.SetInputs(inputs); err != nil {
		return nil, err
	}
	if err := m.Execute(); err != nil {
		return nil, err
	}
	return m.Outputs(), nil
}

// Time executes the model repeat times number executions, after a warm-up, and returns the mean seconds per
// execution for each repetition. If ctx ends it stops after the current execution and returns the cause.
func (m *Model) Time(ctx context.Context, repeat, number int) ([]float64, error) {
	if err := m.Execute(); err != nil {
		return nil, err
	}
	var seconds []float64
	for range repeat {
		begin := time.Now()
		for range number {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err := m.Execute(); err != nil {
				return nil, err
			}
		}
		seconds = append(seconds, time.Since(begin).Seconds()/float64(number))
	}
	return seconds, nil
}

// TimeOnDevice executes the model repeat times, after a warm-up, and returns the device time of each execution in
// seconds, excluding copies of inputs and outputs; nil for a model that runs on the CPU.
func (m *Model) TimeOnDevice(ctx context.Context, repeat int) ([]float64, error) {
	if m.api.deviceSeconds == nil {
		return nil, nil
	}
	var seconds []float64
	for k := range repeat + 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var took float64
		err := m.Execute()
		if err == nil {
			err = m.watched(func() { took = m.api.deviceSeconds(m.handle) })
		}
		if err != nil {
			return nil, err
		}
		if k > 0 {
			seconds = append(seconds, took)
		}
	}
	return seconds, nil
}

// Profile executes the model once and returns the seconds of each call of the manifest, -1 for skipped calls.
// Errors are those of Execute.
func (m *Model) Profile() ([]float64, error) {
	seconds := make([]float64, len(m.manifest.Calls)+1) // never empty, so that it has an address
	err := m.watched(func() { m.api.profile(m.handle, &seconds[0]) })
	return seconds[:len(m.manifest.Calls)], err
}

// Launch holds the measurements of a kernel launch on a device.
type Launch struct {
	// Call is the number of the manifest's call that it belongs to.
	Call    int     `json:"call"`
	Kernel  string  `json:"kernel"`
	Seconds float64 `json:"time_s"`
	Blocks  int64   `json:"blocks"`
	// Threads and SharedBytes are per block, Registers and SpilledBytes per thread.
	Threads      int   `json:"threads"`
	SharedBytes  int64 `json:"shared_bytes"`
	Registers    int   `json:"registers"`
	SpilledBytes int   `json:"spilled_bytes"`
	// Occupancy is the largest number of resident threads on a multiprocessor, as a share of its capacity.
	Occupancy float64 `json:"occupancy"`
}

// maxLaunches limits the launches of one execution.
const maxLaunches = 1 << 24

// Launches returns the launches of the last Profile in order; nil for a model that runs on the CPU.
func (m *Model) Launches() []Launch {
	if m.api.launches == nil {
		return nil
	}
	var n int32
	first := m.api.launches(m.handle, &n)
	if first == nil || n < 0 || n > maxLaunches {
		return nil
	}
	var list []Launch
	for _, l := range unsafe.Slice(first, n) {
		list = append(list, Launch{
			Call: int(l.call), Kernel: text(l.kernel), Seconds: l.seconds, Blocks: l.blocks, Threads: int(l.threads), SharedBytes: l.sharedBytes,
			Registers: int(l.registers), SpilledBytes: int(l.spilled), Occupancy: l.occupancy,
		})
	}
	return list
}

// text converts a C string.
func text(at *byte) string {
	if at == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(at, n))
}

// Peak is the peak performance of a machine with a model's threads; 0 if unmeasured.
type Peak struct {
	// FlopsPerSecond counts float32 fused multiply-adds, two operations each.
	FlopsPerSecond float64 `json:"flops_per_s"`
	// IntegersPerSecond counts multiply-adds of 8-bit integers, or of 16-bit ones if there is no 8-bit instruction,
	// two operations each.
	IntegersPerSecond float64 `json:"integers_per_s,omitempty"`
	// Matrices holds the operations per second of matrix instructions, by format as in a manifest's tasks;
	// unmeasured ones are omitted.
	Matrices map[string]float64 `json:"matrices,omitempty"`
	// BytesPerSecond is the memory read rate; on a device, that of reads and writes.
	BytesPerSecond float64 `json:"bytes_per_s"`
}

// matrices lists the formats of the C interface.
var matrices = []schedule.Format{
	schedule.TF32, schedule.BF16, schedule.F16, schedule.I8,
	schedule.WarpgroupTF32, schedule.WarpgroupBF16, schedule.WarpgroupF16, schedule.WarpgroupI8,
}

// Peak measures the peak performance of this machine. It takes about a tenth of a second, and 128 MiB of memory.
func (m *Model) Peak() (p Peak) {
	m.api.peak(m.handle, &p.FlopsPerSecond, &p.BytesPerSecond)
	if m.api.integerPeak != nil {
		p.IntegersPerSecond = m.api.integerPeak(m.handle)
	}
	if m.api.matricesPeak == nil {
		return p
	}
	p.Matrices = map[string]float64{}
	for k, format := range matrices {
		if rate := m.api.matricesPeak(m.handle, int32(k)); rate > 0 { // older packages support fewer formats
			p.Matrices[format.String()] = rate
		}
	}
	const products = 3 // of the pieces of its factors
	if rate, known := p.Matrices[schedule.TF32.String()]; known {
		p.Matrices[schedule.TF32Compensated.String()] = rate / products
	}
	return p
}

// Close stops the model's threads and frees its memory. The model must not be used afterwards.
func (m *Model) Close() error {
	if m.handle == 0 {
		return nil
	}
	m.api.close(m.handle)
	m.handle, m.inputs, m.outputs = 0, nil, nil
	return m.api.unload()
}
