package graphfuzz

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// peer is ONNX Runtime in a process that runs one graph after another. After a crash, the next graph starts a new
// process.
type peer struct {
	command []string
	dir     string
	process *process
	// compared, refused and ended count graphs by outcome.
	compared, refused, ended int
}

// process is a running process of a peer.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// refusedError is the error with which ONNX Runtime refuses a graph.
type refusedError string

func (e refusedError) Error() string { return "refused: " + string(e) }

// endedError describes a process that ended while running a graph.
type endedError struct{ state *os.ProcessState }

func (e endedError) Error() string { return "ended: " + e.state.String() }

// exchanged describes a file with a tensor's raw little-endian values.
type exchanged struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	File  string  `json:"file"`
}

// answer is the peer's response to a graph.
type answer struct {
	Outputs []exchanged `json:"outputs"`
	Error   string      `json:"error"`
}

var peerTypes = map[array.DType]string{
	array.Float32: "float32", array.Float64: "float64", array.Int8: "int8", array.Int32: "int32", array.Int64: "int64",
	array.Uint8: "uint8", array.Bool: "bool",
}

// startPeer returns nil if no installation is configured.
func startPeer(t *testing.T) *peer {
	t.Helper()
	if *ortDir == "" {
		return nil
	}
	return newPeer(t, "node", "testdata/ort.js", *ortDir)
}

func newPeer(t *testing.T, command ...string) *peer {
	t.Helper()
	p := &peer{command: command, dir: t.TempDir()}
	t.Cleanup(func() {
		if p.process == nil {
			return
		}
		p.process.stdin.Close()
		if err := p.process.cmd.Wait(); err != nil {
			t.Errorf("ONNX Runtime: %v", err)
		}
	})
	return p
}

func (p *peer) start(ctx context.Context) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.command[0], p.command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting ONNX Runtime: %w", err)
	}
	p.process = &process{cmd, stdin, bufio.NewReader(stdout)}
	return nil
}

// run returns a graph's outputs. The error may be a refusedError or an endedError.
func (p *peer) run(ctx context.Context, c *Case) (map[string]*array.Array, error) {
	question, err := p.question(c)
	if err != nil {
		return nil, err
	}
	line, err := p.ask(ctx, question)
	if err != nil {
		return nil, err
	}
	return decode(line)
}

// question writes a graph and its inputs to files and returns the request.
func (p *peer) question(c *Case) ([]byte, error) {
	var inputs []exchanged
	for _, info := range c.Model.Graph.Inputs {
		a := c.Inputs[info.Name]
		file := filepath.Join(p.dir, info.Name)
		if err := os.WriteFile(file, a.Data, 0o600); err != nil {
			return nil, err
		}
		inputs = append(inputs, exchanged{info.Name, peerTypes[a.DType], a.Shape, file})
	}
	model := filepath.Join(p.dir, "model.onnx")
	if err := os.WriteFile(model, c.alike().Encode(), 0o600); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"model": model, "inputs": inputs, "dir": p.dir})
}

// alike returns the part of the model that ONNX Runtime computes in the same types.
func (c *Case) alike() *onnx.Model {
	m, graph, read := *c.Model, *c.Model.Graph, map[string]bool{}
	m.Graph, graph.Outputs, graph.Nodes = &graph, nil, nil
	for _, o := range c.Model.Graph.Outputs {
		if !c.Unlike[o.Name] {
			graph.Outputs, read[o.Name] = append(graph.Outputs, o), true
		}
	}
	for _, n := range slices.Backward(c.Model.Graph.Nodes) {
		if !slices.ContainsFunc(n.Outputs, func(name string) bool { return read[name] }) {
			continue
		}
		graph.Nodes = append(graph.Nodes, n)
		for _, in := range n.Inputs {
			read[in] = true
		}
	}
	slices.Reverse(graph.Nodes)
	graph.Initializers = slices.DeleteFunc(slices.Clone(graph.Initializers), func(w *onnx.Tensor) bool { return !read[w.Name] })
	return &m
}

// ask sends a request and returns the response line.
func (p *peer) ask(ctx context.Context, question []byte) ([]byte, error) {
	if p.process == nil {
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	_, err := fmt.Fprintf(p.process.stdin, "%s\n", question)
	var line []byte
	if err == nil {
		line, err = p.process.stdout.ReadBytes('\n')
	}
	if err == nil {
		return line, nil
	}
	cmd := p.process.cmd
	p.process.stdin.Close()
	p.process = nil
	if waited := cmd.Wait(); cmd.ProcessState == nil {
		return nil, waited
	}
	return nil, endedError{cmd.ProcessState}
}

// maxUncompared is the maximum number of graphs without a comparison: one in a hundred, but at least one.
func maxUncompared(graphs int) int { return max(1, graphs/100) }

// check compares outputs with the peer's. It counts and keeps cases that the peer refuses or that end its process.
// Too many of them indicate a broken peer.
func (p *peer) check(t *testing.T, c *Case, got map[string]*array.Array) {
	t.Helper()
	want, err := p.run(t.Context(), c)
	var refused refusedError
	var ended endedError
	switch {
	case err == nil:
		p.compared++
		if err := c.Compare(got, want, ortTolerance); err != nil {
			report(t, c, fmt.Errorf("against ONNX Runtime: %w", err))
		}
	case errors.As(err, &refused):
		p.refused++
	case errors.As(err, &ended):
		p.ended++
	default:
		t.Fatalf("seed %d: asking ONNX Runtime: %v", c.Seed, err)
	}
	if err == nil {
		return
	}
	t.Logf("seed %d: ONNX Runtime %.200v", c.Seed, err)
	keepCase(t, c)
	if uncompared, most := p.refused+p.ended, maxUncompared(drawn()); uncompared > most {
		t.Fatalf("ONNX Runtime did not run %d graphs, more than %d of %d", uncompared, most, drawn())
	}
}

func decode(line []byte) (map[string]*array.Array, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, refusedError(a.Error)
	}
	outputs := map[string]*array.Array{}
	for _, t := range a.Outputs {
		data, err := os.ReadFile(t.File)
		if err != nil {
			return nil, err
		}
		for d, name := range peerTypes {
			if name == t.DType {
				outputs[t.Name] = &array.Array{DType: d, Shape: t.Shape, Data: data}
			}
		}
	}
	return outputs, nil
}
