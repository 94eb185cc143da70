package aot

import (
	"bufio"
	"context"
	_ "embed" // for the program
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/signing"
)

// guestSource is the program that runs a package that this process cannot load.
//
//go:embed src/guest.c
var guestSource string

// guest is a process that has opened a package of another architecture. Numbers are little-endian on all of them.
type guest struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    beginning
	extents []int64
	names   []string
	inputs  [][]byte
	outputs [][]byte
	shapes  [][]int64
	calls   int32
	failure string
	// ctx bounds the life of the process.
	ctx context.Context
}

// beginning keeps the first bytes written to it.
type beginning struct{ kept []byte }

// maxSaid limits the bytes kept of a process's standard error.
const maxSaid = 4 << 10

// Write accepts everything.
func (b *beginning) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), maxSaid-len(b.kept))]...)
	return len(p), nil
}

// guestDelay is the time to wait, after a guest exits, for its children and open pipes.
const guestDelay = 5 * time.Second

// LoadUnder opens a package for another machine under an emulator: the command that runs such programs. The
// toolchain builds the guest program. The process ends with ctx, or when the model is closed. key is as in Loader.
func LoadUnder(ctx context.Context, path string, tc *toolchain.Toolchain, emulator []string, key *signing.PublicKey) (_ *Model, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("loading package %s: %w", path, err)
		}
	}()
	l := Loader{Key: key}
	f, err := l.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, _, err := readManifest(f) // the verified copy
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tilth-under-*")
	if err != nil {
		return nil, fmt.Errorf("a folder for a program that loads it: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := buildGuest(ctx, Options{Target: m.Target, Toolchain: tc}, dir)
	if err != nil {
		return nil, err
	}
	l.Guest = append(slices.Clone(emulator), program)
	return l.loadFrom(ctx, f, path)
}

// buildGuest builds the guest program for a target in a directory.
func buildGuest(ctx context.Context, o Options, dir string) (string, error) {
	by, err := registry.Of(o.Target)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "guest")
	return path, o.Toolchain.Build(ctx, toolchain.Build{Target: o.Target, Form: toolchain.Executable, Headers: []toolchain.File{by.Runtime(o.Target).Interface},
		Sources: []toolchain.File{{Name: "guest.c", Text: guestSource}}}, path)
}

// startGuest opens a package's object and weights in a process started by command, which is killed when ctx ends.
func startGuest(ctx context.Context, command []string, m *Manifest, object, weights string, offset int64) (*guest, error) {
	args := append(command[1:len(command):len(command)], object, weights, strconv.FormatInt(offset, 10))
	g := &guest{cmd: exec.CommandContext(ctx, command[0], args...), ctx: ctx}
	g.cmd.WaitDelay = guestDelay
	g.cmd.Stderr = &g.said
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.out = bufio.NewReader(out)
	if err := g.cmd.Start(); ctx.Err() != nil && g.cmd.Process == nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, fmt.Errorf("running %s: %w", command[0], err)
	}
	if err := g.introduced(m); err != nil {
		return nil, errors.Join(g.ended(err), g.stop())
	}
	return g, nil
}

// introduced reads the process's description of the package, which must match the manifest.
func (g *guest) introduced(m *Manifest) error {
	counts := make([]int64, 3)
	if err := binary.Read(g.out, binary.LittleEndian, counts); err != nil {
		return err
	}
	if counts[0] != int64(len(m.Inputs)) || counts[1] != int64(len(m.Outputs)) {
		return fmt.Errorf("%s and %s do not belong together; compile the model again", objectName, manifestName)
	}
	g.calls = int32(counts[2])
	sizes := make([]int64, len(m.Inputs)+len(m.Outputs))
	if err := binary.Read(g.out, binary.LittleEndian, sizes); err != nil {
		return err
	}
	for k, t := range append(m.Inputs[:len(m.Inputs):len(m.Inputs)], m.Outputs...) {
		if want := array.Elements(t.Shape) * t.Type().Bytes(); sizes[k] != want {
			return fmt.Errorf("%s and %s differ on the size of %q; compile the model again", objectName, manifestName, t.Name)
		}
	}
	for k := range m.Inputs {
		g.inputs = append(g.inputs, make([]byte, sizes[k]))
	}
	for k, t := range m.Outputs {
		g.outputs = append(g.outputs, make([]byte, sizes[len(m.Inputs)+k]))
		g.shapes = append(g.shapes, make([]int64, len(t.Shape)))
	}
	for _, e := range m.Extents {
		g.names, g.extents = append(g.names, e.Name), append(g.extents, e.Max)
	}
	return nil
}

// run runs the model on the inputs in the process.
func (g *guest) run() {
	g.failure = ""
	if err := g.exchange(); err != nil {
		g.failure = g.ended(err).Error()
	}
}

func (g *guest) exchange() error {
	request := []byte{1}
	for _, n := range g.extents {
		request = binary.LittleEndian.AppendUint64(request, uint64(n))
	}
	for _, part := range append([][]byte{request}, g.inputs...) {
		if _, err := g.in.Write(part); err != nil {
			return err
		}
	}
	var failed int64
	if err := binary.Read(g.out, binary.LittleEndian, &failed); err != nil {
		return err
	}
	if failed > 0 {
		why := make([]byte, min(failed, maxSaid))
		_, err := io.ReadFull(g.out, why)
		g.failure = string(why)
		return err
	}
	for k, data := range g.outputs {
		if err := binary.Read(g.out, binary.LittleEndian, g.shapes[k]); err != nil {
			return err
		}
		if _, err := io.ReadFull(g.out, data); err != nil {
			return err
		}
	}
	return nil
}

// ended returns the error of a process that did not answer, with its own message if there is one.
func (g *guest) ended(err error) error {
	_ = g.in.Close()
	if wait := g.cmd.Wait(); wait != nil {
		err = wait
	}
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	if said := strings.TrimSpace(string(g.said.kept)); said != "" {
		return fmt.Errorf("%s: %s", err, strings.Join(strings.Fields(said), " "))
	}
	return err
}

// stop stops the process.
func (g *guest) stop() error {
	_ = g.in.Close()
	if g.cmd.ProcessState != nil {
		return nil
	}
	if err := g.cmd.Wait(); err != nil && g.ctx.Err() == nil {
		return fmt.Errorf("running the model: %w", err)
	}
	return nil
}

// api returns the package's C interface in the process. It reports no times, since emulated times are meaningless.
func (g *guest) api() *capi {
	return &capi{
		guest: g,
		open:  func(string, int64) uintptr { return 1 }, close: func(uintptr) {},
		lastError:  func() string { return g.failure },
		inputCount: func() int32 { return int32(len(g.inputs)) }, outputCount: func() int32 { return int32(len(g.outputs)) },
		callCount:   func() int32 { return g.calls },
		inputTensor: func(k int32) *ctensor { return &ctensor{bytes: int64(len(g.inputs[k]))} },
		outputTensor: func(k int32) *ctensor {
			return &ctensor{bytes: int64(len(g.outputs[k]))}
		},
		input:  func(_ uintptr, k int32) *byte { return unsafe.SliceData(g.inputs[k]) },
		output: func(_ uintptr, k int32) *byte { return unsafe.SliceData(g.outputs[k]) },
		run:    func(uintptr) { g.run() },
		profile: func(_ uintptr, seconds *float64) {
			g.run()
			for k := range unsafe.Slice(seconds, g.calls) {
				unsafe.Slice(seconds, g.calls)[k] = -1
			}
		},
		peak:        func(uintptr, *float64, *float64) {},
		integerPeak: func(uintptr) float64 { return 0 },
		outputShape: func(_ uintptr, k int32, shape *int64) int32 {
			copy(unsafe.Slice(shape, len(g.shapes[k])), g.shapes[k])
			return 0
		},
		extentCount: func() int32 { return int32(len(g.extents)) }, extentName: func(k int32) string { return g.names[k] },
		setExtent: func(_ uintptr, k int32, n int64) int32 { g.extents[k] = n; return 0 },
	}
}

// inGuest opens an object of another architecture.
func (l Loader) inGuest(ctx context.Context, m *Manifest, object []byte, weights string, offset int64) (*capi, error) {
	if m.Decoding != nil {
		return nil, errors.New("a decoder, whose outputs stay in the memory of its inputs, does not run under an emulator")
	}
	dir, err := os.MkdirTemp("", "tilth-guest-*")
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	defer os.RemoveAll(dir) // once it has answered, the process holds all files open
	path := filepath.Join(dir, objectName)
	if err := os.WriteFile(path, object, 0o600); err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", objectName, err)
	}
	g, err := startGuest(ctx, l.Guest, m, path, weights, offset)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", objectName, err)
	}
	return g.api(), nil
}
