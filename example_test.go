package tilth_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
)

// mlp writes the package of a small classifier of digit images.
func mlp() (file string, remove func()) {
	dir, err := os.MkdirTemp("", "tilth-example-*")
	if err != nil {
		log.Fatal(err)
	}
	m, err := modelzoo.Build("mlp", modelzoo.Options{})
	if err != nil {
		log.Fatal(err)
	}
	file = filepath.Join(dir, "mlp.tar")
	if err := compile(context.Background(), m, frontend.Options{}, file); err != nil {
		log.Fatal(err)
	}
	return file, func() { os.RemoveAll(dir) }
}

func ExampleLoad() {
	file, remove := mlp() // as written by 'tilth compile mlp.onnx'
	defer remove()

	m, err := tilth.Load(file)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, in := range m.Inputs() {
		fmt.Println("input", in.Name, in)
	}
	image := tilth.NewTensor(m.Inputs()[0].Name, make([]float32, 784), 1, 784)
	outputs, err := m.Run(context.Background(), []tilth.Tensor{image})
	if err != nil {
		log.Fatal(err)
	}
	scores, err := tilth.Values[float32](outputs[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("output", outputs[0].Shape, len(scores))
	// Output:
	// input data f32[1 784]
	// output [1 10] 10
}
