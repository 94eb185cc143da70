package kerneltest

import (
	"bytes"
	"context"
	_ "embed" // for the driver
	"encoding/binary"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

//go:embed src/driver.c
var driver string

// runLimit bounds a run of a batch. Sanitizers take seconds on a loaded machine; a hung kernel never ends.
const runLimit = 5 * time.Minute

// Source returns the program that runs cases: a unit that describes their kernels under symbols, which are empty for
// refused cases, and code that reads their arguments.
func Source(unit string, symbols []string) string {
	table := make([]string, len(symbols))
	for k, symbol := range symbols {
		table[k] = "&" + symbol
		if symbol == "" {
			table[k] = "0"
		}
	}
	return fmt.Sprintf("%s\nconst struct tilth_kernel *const test_kernels[] = {%s};\n%s", unit, strings.Join(table, ", "), driver)
}

// Run runs the cases that are not refused with the command of their compiled program. The error names the failure and
// its case.
func Run(command []string, cases []Case, refused map[int]error) (outputs [][]*array.Array, at int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(encodeCases(cases, refused)), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, lastCase(stderr.String(), refused), fmt.Errorf("%w\n%s", err, Tail(stderr.String()))
	}
	return decodeOutputs(cases, refused, stdout.Bytes()), 0, nil
}

func encodeCases(cases []Case, refused map[int]error) []byte {
	var b []byte
	put := func(v int) { b = binary.LittleEndian.AppendUint64(b, uint64(v)) }
	put(len(cases) - len(refused))
	for k, c := range cases {
		if refused[k] != nil {
			continue
		}
		put(k)
		put(c.Workers)
		put(len(c.Args) + len(c.Workload.Outputs))
		for k, a := range c.Args {
			data := spread(c.Workload.Args()[k], a)
			put(len(data))
			put(0)
			b = append(b, data...)
		}
		for _, o := range c.Workload.Outputs {
			put(int(o.SpanElements() * o.DType.Bytes()))
			put(1)
		}
	}
	return b
}

func decodeOutputs(cases []Case, refused map[int]error, data []byte) [][]*array.Array {
	outputs := make([][]*array.Array, len(cases))
	for k, c := range cases {
		if refused[k] != nil {
			continue
		}
		for _, o := range c.Workload.Outputs {
			span := o.SpanElements() * o.DType.Bytes()
			outputs[k] = append(outputs[k], collect(o, data[:span]))
			data = data[span:]
		}
	}
	return outputs
}

// spread returns an argument's memory: its elements at the tensor's strides, NaN between them.
func spread(t *expr.Tensor, a *array.Array) []byte {
	data := bytes.Repeat([]byte{0xff}, int(t.SpanElements()*t.DType.Bytes()))
	evaluate.CopyStrided(t.DType, t.Shape, evaluate.Strided{Data: data, Strides: t.MemoryStrides()},
		evaluate.Strided{Data: a.Data, Strides: expr.RowMajorStrides(t.Shape)})
	return data
}

// collect extracts a tensor's elements from its memory. If a gap was written, it returns an empty array.
func collect(t *expr.Tensor, data []byte) *array.Array {
	a := array.New(t.DType, t.Shape...)
	evaluate.CopyStrided(t.DType, t.Shape, evaluate.Strided{Data: a.Data, Strides: expr.RowMajorStrides(t.Shape)},
		evaluate.Strided{Data: data, Strides: t.MemoryStrides()})
	if !bytes.Equal(data, spread(t, a)) {
		return array.New(t.DType, 0)
	}
	return a
}

// lastCase returns the case that the driver named last.
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

// Tail returns the part of a program's messages that describes the failure.
func Tail(s string) string {
	lines := strings.Split(s, "\n")
	for k, line := range lines {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "runtime error") {
			return strings.Join(lines[k:min(len(lines), k+12)], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
