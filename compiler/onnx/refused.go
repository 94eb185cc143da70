package onnx

import (
	"bytes"
	"errors"
	"fmt"
)

// otherFormats lists common model file formats by signature, with advice on conversion to ONNX.
var otherFormats = []struct {
	at         int
	begin      string
	name, hint string
}{
	{4, "TFL3", "a TensorFlow Lite model", "convert it: python3 -m tf2onnx.convert --tflite model.tflite --output model.onnx"},
	{0, "PK\x03\x04", "a zip archive, as PyTorch and Keras save models",
		"export the model: torch.onnx.export(model, inputs, \"model.onnx\"), or tf2onnx.convert"},
	{0, "\x89HDF", "an HDF5 file, as Keras saves models",
		"convert it: python3 -m tf2onnx.convert --keras model.h5 --output model.onnx"},
	{0, "GGUF", "a GGUF file, which has weights and no graph", "export the model from its framework to ONNX"},
	{0, "\x80\x02", "a pickle, as PyTorch saved models once", "load it and call torch.onnx.export(model, inputs, \"model.onnx\")"},
	{8, `{"`, "a safetensors file, which has weights and no graph", "load it into its model and call torch.onnx.export"},
	{0, "<?xml", "XML, as OpenVINO saves models", "convert the model that it was made from to ONNX"},
	{0, "version https://git-lfs", "a pointer of Git LFS, not the file that it stands for", "fetch the file: git lfs pull"},
}

// refuseOther returns a specific error for files of other formats.
func refuseOther(data []byte) error {
	for _, f := range otherFormats {
		if len(data) > f.at && bytes.HasPrefix(data[f.at:], []byte(f.begin)) {
			return fmt.Errorf("it is %s: %s", f.name, f.hint)
		}
	}
	return nil
}

// ErrUnsupported marks errors about valid files with unsupported contents, as opposed to invalid files.
var ErrUnsupported = errors.New("not supported")

// unsupported is an error of that kind with its own text.
type unsupported string

func unsupportedf(format string, args ...any) error { return unsupported(fmt.Sprintf(format, args...)) }

// Error returns the text.
func (e unsupported) Error() string { return string(e) }

// Is reports whether the target is ErrUnsupported.
func (e unsupported) Is(target error) bool { return target == ErrUnsupported }
