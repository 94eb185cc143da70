// Package tilth runs compiled models from Go, without cgo. A package (a file that 'tilth compile' or aot.Compile
// writes) holds a model's machine code and weights; Load opens it, and Run computes its outputs:
//
//	m, err := tilth.Load("resnet18.tar")
//	...
//	defer m.Close()
//	outputs, err := m.Run(ctx, []tilth.Tensor{tilth.NewTensor("data", pixels, 1, 3, 224, 224)})
//	...
//	scores, err := tilth.Values[float32](outputs[0])
//
// Package tuner/jobclient tunes models on a farm. docs/go.md has more examples.
package tilth
