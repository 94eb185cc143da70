package models

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/aot/profile"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/bench"
)

// comparison compares one model on one number of threads. Contenders take turns (A B C A B C ...), so that speed
// changes of the machine affect all of them.
type comparison struct {
	model    string
	threads  int
	packages []string
	inputs   string // .npz; empty = random
	// extents fixes extents that packages leave open.
	extents map[string]int64
	// seconds is the approximate duration. There are at least minRounds rounds of runs executions.
	seconds float64
	runs    int
	scratch string
	// withOneDNN adds ONNX Runtime with oneDNN, if it is installed.
	withOneDNN   bool
	peer         *contender
	oneDNN       *contender
	ours         []*contender
	measurements []measurement
}

// Programs of contenders.
const (
	ortFolder = ".tools/ort" // with node_modules/onnxruntime-node
	ortScript = "lab/bench/models/ort.js"
	// ortOneDNN serves ONNX Runtime with oneDNN. scripts/peers.sh builds it.
	ortOneDNN = ".tools/peers/onnxruntime"
)

// minRounds is the minimum number of turns of each contender for a median.
const minRounds = 5

// measurement is the result of one package, taken in turns with ONNX Runtime. Times are per execution.
type measurement struct {
	Package string `json:"package"`
	Rounds  int    `json:"rounds"`
	// Seconds and PeerSeconds are medians over all executions.
	Seconds     float64 `json:"seconds"`
	PeerSeconds float64 `json:"peer_seconds"`
	// Ratio is the median over the rounds of the peer's time divided by ours. RatioLow and RatioHigh are the
	// quartiles.
	Ratio     float64 `json:"ratio"`
	RatioLow  float64 `json:"ratio_low"`
	RatioHigh float64 `json:"ratio_high"`
	// OneDNNSeconds and OneDNNRatio are the corresponding medians of ONNX Runtime with its oneDNN provider, or 0 if
	// it did not take part.
	OneDNNSeconds float64 `json:"onednn_seconds,omitempty"`
	OneDNNRatio   float64 `json:"onednn_ratio,omitempty"`
	// RelativeError is the largest difference of an output from the peer's, divided by the output's largest value.
	RelativeError float64 `json:"relative_error"`
	// Memory is the growth of the process's peak resident memory by the model, PeakMemory the peak. Both are in
	// bytes.
	Memory         int64 `json:"memory_bytes"`
	PeakMemory     int64 `json:"peak_memory_bytes"`
	PeerMemory     int64 `json:"peer_memory_bytes"`
	PeerPeakMemory int64 `json:"peer_peak_memory_bytes"`
	// Flop counts the operations of one execution with direct sums, WeightBytes its weights. Bytes is the minimum
	// that its kernels read and write.
	Flop        float64  `json:"flop"`
	WeightBytes int64    `json:"weight_bytes"`
	Bytes       int64    `json:"bytes,omitempty"`
	Peak        aot.Peak `json:"peak"`
	// Kernels lists the slowest tasks.
	Kernels []kernel `json:"kernels,omitempty"`
}

// run measures all packages.
func (c *comparison) run(ctx context.Context) (err error) {
	inputs, err := c.prepare()
	if err != nil {
		return err
	}
	if c.scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop(), os.RemoveAll(c.scratch)) }()
	spec, err := writeSpec(inputs, c.scratch)
	if err != nil {
		return err
	}
	return bench.Timed(ctx, func() error {
		if err := c.startAll(ctx, spec); err != nil {
			return err
		}
		if err := c.takeTurns(ctx); err != nil {
			return err
		}
		return c.judge()
	})
}

// prepare reads the manifests of the packages and the inputs.
func (c *comparison) prepare() (map[string]*array.Array, error) {
	var first *aot.Manifest
	for _, path := range c.packages {
		m, err := aot.ReadManifest(path)
		if err != nil {
			return nil, err
		}
		if n := m.Target.Threads(); n != c.threads {
			return nil, fmt.Errorf("package %s is for %d threads, wanted %d: compile it with --threads %d", path, n, c.threads, c.threads)
		}
		if first == nil {
			first = m
		}
		c.measurements = append(c.measurements, measurement{Package: path, Flop: m.Flop(), WeightBytes: m.WeightsBytes})
	}
	return readInputs(c.inputs, first, c.extents)
}

func (c *comparison) startAll(ctx context.Context, spec string) (err error) {
	if c.peer, err = start(ctx, "ONNX Runtime", "node", ortScript, ortFolder, c.model, fmt.Sprint(c.threads), spec); err != nil {
		return err
	}
	if err := c.startOneDNN(ctx, spec); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, path := range c.packages {
		one, err := start(ctx, path, self, command, "serve", path, spec)
		if err != nil {
			return err
		}
		c.ours = append(c.ours, one)
	}
	return nil
}

// startOneDNN starts ONNX Runtime with oneDNN if it is installed. An unsupported model is not an error.
func (c *comparison) startOneDNN(ctx context.Context, spec string) error {
	if _, err := os.Stat(ortOneDNN); err != nil || !c.withOneDNN {
		return nil
	}
	inputs, err := listed(spec)
	if err != nil {
		return err
	}
	arguments := []string{ortOneDNN, c.model, fmt.Sprint(c.threads)}
	for _, in := range inputs {
		shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(in.Shape), "[]"), " ", "x")
		arguments = append(arguments, in.Name, in.DType, shape, in.File)
	}
	if c.oneDNN, err = start(ctx, "ONNX Runtime with oneDNN", arguments...); err != nil {
		fmt.Fprintf(os.Stderr, "bench: doing without ONNX Runtime with oneDNN: %v\n", err)
	}
	return nil
}

// contenders returns all contenders.
func (c *comparison) contenders() []*contender {
	list := []*contender{c.peer}
	if c.oneDNN != nil {
		list = append(list, c.oneDNN)
	}
	return append(list, c.ours...)
}

func (c *comparison) stop() (err error) {
	for _, one := range c.contenders() {
		if one != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return err
}

// takeTurns runs rounds until the time is up.
func (c *comparison) takeTurns(ctx context.Context) error {
	began := time.Now()
	for round := 0; round < minRounds || time.Since(began).Seconds() < c.seconds; round++ {
		for _, one := range c.contenders() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := one.turn(c.runs); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge computes the measurements.
func (c *comparison) judge() error {
	want, err := c.peer.outputs(c.scratch)
	if err != nil {
		return err
	}
	peerMemory, peerPeak, err := c.peer.memory()
	if err != nil {
		return err
	}
	for k, one := range c.ours {
		m := &c.measurements[k]
		dir := filepath.Join(c.scratch, fmt.Sprint(k))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		got, err := one.outputs(dir)
		if err != nil {
			return err
		}
		m.RelativeError = bench.WorstError(got, want)
		m.PeerMemory, m.PeerPeakMemory = peerMemory, peerPeak
		if m.Memory, m.PeakMemory, err = one.memory(); err != nil {
			return err
		}
		var p profile.Profile
		if err := one.AskJSON("profile", &p); err != nil {
			return err
		}
		m.Peak, m.Bytes, m.Kernels = p.Peak, p.Total.Bytes, busiest(p.Calls, maxKernels)
		m.judgeTimes(c.peer.samples, one.samples)
		if c.oneDNN != nil {
			t := bench.Compare(one.samples, c.oneDNN.samples)
			m.OneDNNSeconds, m.OneDNNRatio = t.PeerSeconds, t.Ratio
		}
	}
	return nil
}

// judgeTimes computes the medians and ratio of a package against the peer.
func (m *measurement) judgeTimes(peer, ours [][]float64) {
	t := bench.Compare(ours, peer)
	m.Rounds, m.Seconds, m.PeerSeconds = len(ours), t.Seconds, t.PeerSeconds
	m.RatioLow, m.Ratio, m.RatioHigh = t.Low, t.Ratio, t.High
}
