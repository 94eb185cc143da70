package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// ort is ONNX Runtime in a process of its own, kept warm between its turns.
type ort struct {
	dir    string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// tensorFile is a tensor as raw values in a file.
type tensorFile struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	File  string  `json:"file"`
}

// startORT starts the script over an installation; dir is for files that both sides read.
func startORT(ctx context.Context, installation, script, model string, threads int, inputs map[string]*array.Array, dir string) (*ort, error) {
	spec, err := writeTensors(inputs, dir)
	if err != nil {
		return nil, err
	}
	o := &ort{dir: dir, cmd: exec.CommandContext(ctx, "node", script, installation, model, strconv.Itoa(threads), spec)}
	o.cmd.Stderr = os.Stderr
	if o.stdin, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.stdout = bufio.NewReader(out)
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start ONNX Runtime: %w", err)
	}
	if line, err := o.stdout.ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		return nil, fmt.Errorf("start ONNX Runtime on %s: it said %q: %w", model, line, err)
	}
	return o, nil
}

func writeTensors(tensors map[string]*array.Array, dir string) (string, error) {
	var list []tensorFile
	for name, a := range tensors {
		file := filepath.Join(dir, fmt.Sprintf("input%d", len(list)))
		if err := os.WriteFile(file, a.Data, 0o644); err != nil {
			return "", err
		}
		list = append(list, tensorFile{Name: name, DType: ortTypes[a.DType], Shape: a.Shape, File: file})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	spec := filepath.Join(dir, "inputs.json")
	return spec, os.WriteFile(spec, b, 0o644)
}

// run takes a turn and returns the seconds of each execution.
func (o *ort) run(count int) ([]float64, error) {
	var times []float64
	if err := o.ask(fmt.Sprintf("run %d", count), &times); err != nil {
		return nil, err
	}
	for i := range times {
		times[i] /= 1e3
	}
	return times, nil
}

// outputs returns the results of the last execution.
func (o *ort) outputs() (map[string]*array.Array, error) {
	var list []tensorFile
	if err := o.ask("outputs "+o.dir, &list); err != nil {
		return nil, err
	}
	outputs := map[string]*array.Array{}
	for _, t := range list {
		data, err := os.ReadFile(t.File)
		if err != nil {
			return nil, err
		}
		outputs[t.Name] = &array.Array{DType: fromORT(t.DType), Shape: t.Shape, Data: data}
	}
	return outputs, nil
}

func (o *ort) ask(question string, answer any) error {
	if _, err := fmt.Fprintln(o.stdin, question); err != nil {
		return fmt.Errorf("ask ONNX Runtime to %s: %w", question, err)
	}
	line, err := o.stdout.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("ask ONNX Runtime to %s: %w", question, err)
	}
	return json.Unmarshal(line, answer)
}

// stop ends the process.
func (o *ort) stop() error {
	o.stdin.Close()
	return o.cmd.Wait()
}

// ortTypes are the element types by ONNX Runtime's names.
var ortTypes = map[array.DType]string{
	array.Float32: "float32", array.Float64: "float64", array.Int8: "int8", array.Int16: "int16", array.Int32: "int32",
	array.Int64: "int64", array.Uint8: "uint8", array.Uint16: "uint16", array.Uint32: "uint32", array.Uint64: "uint64",
	array.Bool: "bool",
}

func fromORT(name string) array.DType {
	for d, n := range ortTypes {
		if n == name {
			return d
		}
	}
	return array.Invalid
}
