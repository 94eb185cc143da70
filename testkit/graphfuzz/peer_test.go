package graphfuzz

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// peer is ONNX Runtime in a process that takes one graph after another.
type peer struct {
	dir    string
	stdin  io.Writer
	stdout *bufio.Reader
}

// exchanged is a tensor as the peer reads and writes it: raw little-endian values in a file.
type exchanged struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	File  string  `json:"file"`
}

// answer is what the peer says of a graph.
type answer struct {
	Outputs []exchanged `json:"outputs"`
	Error   string      `json:"error"`
}

var peerTypes = map[array.DType]string{
	array.Float32: "float32", array.Float64: "float64", array.Int8: "int8", array.Int32: "int32", array.Int64: "int64",
	array.Uint8: "uint8", array.Bool: "bool",
}

// startPeer returns nil when no installation was named.
func startPeer(t *testing.T) *peer {
	t.Helper()
	if *ortDir == "" {
		return nil
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "node", "testdata/ort.js", *ortDir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting ONNX Runtime: %v", err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("ONNX Runtime: %v", err)
		}
	})
	return &peer{t.TempDir(), stdin, bufio.NewReader(stdout)}
}

func (p *peer) run(c *Case) (map[string]*array.Array, error) {
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
	if err := os.WriteFile(model, c.Model.Encode(), 0o600); err != nil {
		return nil, err
	}
	question, err := json.Marshal(map[string]any{"model": model, "inputs": inputs, "dir": p.dir})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(p.stdin, "%s\n", question); err != nil {
		return nil, err
	}
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return decode(line)
}

func decode(line []byte) (map[string]*array.Array, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, fmt.Errorf("%s", a.Error)
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
