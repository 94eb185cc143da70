package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// signedProduct returns a product of signed bytes, which VNNI multiplies as unsigned ones.
func signedProduct() *onnx.Model {
	weights := array.New(array.Int8, 64, 16)
	for i := range weights.Data {
		weights.Data[i] = byte(i * 37)
	}
	scale := array.New(array.Float32)
	scale.SetFloat(0, 0.02)
	return modeltest.New().Input("x", 8, 64).Known("s", scale).Known("z", array.New(array.Int8)).Known("w", weights).
		Node("q = QuantizeLinear x s z").Node("y = QLinearMatMul q s z w s z s z").Output("y")
}

// TestCommandsAgreeWithCompileOnTasks checks that listings, recordings and exchanges use the same tasks for a target
// with a required byte type.
func TestCommandsAgreeWithCompileOnTasks(t *testing.T) {
	dir := t.TempDir()
	on, err := target.Parse("x86-64-v4", 1)
	if err != nil {
		t.Fatal(err)
	}
	on.CPU.Features = append(on.CPU.Features, "avx512vnni")
	slices.Sort(on.CPU.Features)
	model, vnni := filepath.Join(dir, "signed.onnx"), filepath.Join(dir, "vnni.json")
	for file, data := range map[string][]byte{model: signedProduct().Encode(), vnni: on.Encode()} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	storage, err := registry.Storage(on, schedule.Default, array.Invalid)
	if err != nil {
		t.Fatal(err)
	}
	plain, want := digests(t, array.Storage{}), digests(t, storage)
	if slices.Equal(plain, want) {
		t.Fatal("the target has the tasks that any has: the test shows nothing")
	}

	var stdout, stderr bytes.Buffer
	if status := run([]string{"tasks", model, "--json", "--target", vnni}, strings.NewReader(""), &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	var rows []taskRow
	if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, r := range rows {
		listed = append(listed, r.Digest)
	}
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Errorf("listed %v, want %v", listed, want)
	}

	filter, err := (&syncCommand{modelOf: model}).filter()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Concat(plain, want) {
		if !slices.Contains(filter.Workloads, d) {
			t.Errorf("records of task %s are not exchanged", d)
		}
	}
}

// digests returns the sorted digests of the product's tasks for a storage format.
func digests(t *testing.T, storage array.Storage) []string {
	t.Helper()
	p, err := frontend.Import(signedProduct(), frontend.Options{Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, task := range p.Tasks {
		list = append(list, task.Workload.Digest())
	}
	slices.Sort(list)
	return list
}
