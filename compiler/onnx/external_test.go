package onnx

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// outside returns a TensorProto whose data is elsewhere, at the place that pairs of key and value describe.
func outside(code int64, dims []int64, pairs ...string) []byte {
	return tensorWith(code, dims, func(m *message) {
		for i := 0; i < len(pairs); i += 2 {
			var pair message
			pair.text(1, pairs[i])
			pair.text(2, pairs[i+1])
			m.message(13, &pair)
		}
		m.int(14, 1)
	})
}

// modelOf returns a model with initializers.
func modelOf(tensors ...[]byte) []byte {
	var g, m message
	for _, t := range tensors {
		g.bytes(5, t)
	}
	m.message(7, &g)
	return m.encoded()
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestExternalDataIsReadFromBesideTheModel(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "weights"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "m.data"), []byte("\x05\x06\x07\x08\xf1\x08"))
	writeFile(t, filepath.Join(dir, "weights", "one"), []byte{9, 0, 0, 0, 0, 0, 0, 0})
	path := filepath.Join(dir, "m.onnx")
	writeFile(t, path, modelOf(
		outside(2, []int64{2}, "location", "m.data", "offset", "1", "length", "2", "checksum", "unused"),
		outside(2, []int64{4}, "location", "m.data"), // of a file that is longer
		outside(7, nil, "location", "weights/one", "length", "8"),
		outside(21, []int64{3}, "location", "m.data", "offset", "4", "length", "2"), // of four bits
		outside(17, []int64{2}, "location", "m.data", "offset", "3", "length", "2"), // of eight bits
		outside(1, []int64{0}, "location", "m.data", "offset", "6"),
	))
	m, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{6, 7}, {5, 6, 7, 8}, {9}, {1, 15, 8}, {0x1p-6, -144}, nil} {
		var got []float64
		value := m.Graph.Initializers[i].Value
		for k := range value.Len() {
			got = append(got, value.Float(k))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("tensor %d is %v, want %v", i, got, want)
		}
	}
}

// TestFilesBesideTheModelIdentifyIt: whole, whatever of them tensors use.
func TestFilesBesideTheModelIdentifyIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	model := modelOf(outside(2, []int64{1}, "location", "b"), outside(2, []int64{1}, "location", "a"), outside(2, []int64{1}, "location", "b"))
	writeFile(t, path, model)
	read := func(a, b string) *Model {
		t.Helper()
		writeFile(t, filepath.Join(dir, "a"), []byte(a))
		writeFile(t, filepath.Join(dir, "b"), []byte(b))
		m, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	hexed := func(data string) string {
		sum := sha256.Sum256([]byte(data))
		return hex.EncodeToString(sum[:])
	}
	m := read("xy", "z")
	if want := []DataFile{{"a", 2, hexed("xy")}, {"b", 1, hexed("z")}}; !reflect.DeepEqual(m.Data, want) {
		t.Errorf("got %v, want %v", m.Data, want)
	}
	if want := hexed(hexed(string(model)) + hexed("xy") + hexed("z")); m.Digest != want {
		t.Errorf("the digest is %s, want %s", m.Digest, want)
	}
	if other := read("x!", "z"); other.Digest == m.Digest {
		t.Error("another file gives the same digest")
	}
}

func TestExternalDataIsRefused(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "model")
	if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(above, "secret"), make([]byte, 64))
	writeFile(t, filepath.Join(dir, "data"), make([]byte, 64))
	if err := os.Symlink("../secret", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"none", nil, `"", which is outside the model's folder`},
		{"missing", []string{"location", "gone"}, `the file "gone" beside the model: no such file`},
		{"above", []string{"location", "../secret"}, "is outside the model's folder"},
		{"absolute", []string{"location", filepath.Join(above, "secret")}, "is outside the model's folder"},
		{"link", []string{"location", "link"}, `the file "link" beside the model: path escapes from parent`},
		{"folder", []string{"location", "folder"}, `"folder", which is not a file`},
		{"length", []string{"location", "data", "length", "7"}, "it needs 8 bytes, but its external data has 7"},
		{"end", []string{"location", "data", "offset", "57"}, "its 8 bytes from byte 57 on are beyond the end of data, which has 64"},
		{"far", []string{"location", "data", "offset", "9223372036854775807"}, "beyond the end"},
		{"negative", []string{"location", "data", "offset", "-8"}, `the offset "-8" of its external data is not a number of bytes`},
		{"words", []string{"location", "data", "length", "all"}, `the length "all" of its external data is not a number of bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, "m.onnx")
			writeFile(t, path, modelOf(outside(7, []int64{1}, c.pairs...)))
			_, err := ReadFile(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "read model "+path+`: tensor "t": `) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	_, err := Read(modelOf(outside(7, []int64{1}, "location", "data")))
	if err == nil || !strings.Contains(err.Error(), `the file "data" beside the model: name the model's file`) {
		t.Errorf("without a folder: %v", err)
	}
}

func TestExternalDataIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	writeFile(t, filepath.Join(filepath.Dir(path), "data"), make([]byte, 64))
	beside := besides(path, 100)
	defer beside.close()
	whole := outside(2, []int64{64}, "location", "data")
	if _, err := read(modelOf(whole), beside); err != nil {
		t.Error(err)
	}
	if _, err := read(modelOf(whole), beside); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("a second time: %v", err)
	}
}

// TestFilesBesideTheModelAreBounded by the sum of their sizes, for each is read whole; this one is a hole.
func TestFilesBesideTheModelAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	writeFile(t, path, modelOf(outside(2, []int64{1}, "location", "data")))
	data := filepath.Join(filepath.Dir(path), "data")
	writeFile(t, data, []byte{1})
	if err := os.Truncate(data, maxModelBytes+1); err != nil {
		t.Skipf("no file of that size here: %v", err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "data and the other files with external data are over the limit") {
		t.Error(err)
	}
}

func compressed(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompressedModelsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx.gz")
	writeFile(t, filepath.Join(filepath.Dir(path), "data"), []byte{42})
	z := compressed(t, modelOf(outside(2, []int64{1}, "location", "data")))
	writeFile(t, path, z)
	m, err := ReadFile(path)
	if err != nil || m.Graph.Initializers[0].Value.Float(0) != 42 {
		t.Errorf("got %v, %v", m, err)
	}
	if m, err := ReadFrom(bytes.NewReader(compressed(t, small().Encode())), "it"); err != nil || m.Graph.Name != "small" {
		t.Errorf("from a stream: %v, %v", m, err)
	}
	for n := range z {
		writeFile(t, path, z[:n])
		if _, err := ReadFile(path); err == nil {
			t.Errorf("the first %d bytes are taken for the whole", n)
		}
	}
}

func TestOtherFormatsAreNamed(t *testing.T) {
	dir := t.TempDir()
	for begin, want := range map[string]string{
		"\x1c\x00\x00\x00TFL3": "it is a TensorFlow Lite model: convert it: python3 -m tf2onnx.convert --tflite",
		"PK\x03\x04":           "it is a zip archive, as PyTorch and Keras save models: export the model: torch.onnx.export",
		"\x89HDF\r\n":          "it is an HDF5 file, as Keras saves models",
		"GGUF\x03":             "it is a GGUF file",
		"\x80\x02}":            "it is a pickle",
		"\x10\x00\x00\x00\x00\x00\x00\x00{\"w\":": "it is a safetensors file",
		"<?xml version":                      "it is XML, as OpenVINO saves models",
		"version https://git-lfs.github.com": "it is a pointer of Git LFS",
	} {
		path := filepath.Join(dir, "model")
		writeFile(t, path, []byte(begin))
		if _, err := ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("read model %s: %s", path, want)) {
			t.Errorf("%q: %v", begin, err)
		}
	}
	if _, err := ReadFile(dir); err == nil || !strings.HasSuffix(err.Error(), "it is a folder: name the .onnx file in it") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); err == nil || !strings.HasSuffix(err.Error(), "none: no such file or directory") {
		t.Errorf("none: %v", err)
	}
}

// FuzzReadExternal has models name any place for the data of a tensor.
func FuzzReadExternal(f *testing.F) {
	f.Add("data", "0", "8", int64(1))
	f.Add("../data", "-1", "9223372036854775807", int64(2))
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), make([]byte, 64), 0o644); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, location, offset, length string, extent int64) {
		beside := besides(filepath.Join(dir, "m.onnx"), 1<<10)
		defer beside.close()
		m, err := read(modelOf(outside(7, []int64{extent}, "location", location, "offset", offset, "length", length)), beside)
		if err != nil {
			return
		}
		if v := m.Graph.Initializers[0].Value; v.DType != array.Int64 || v.Check() != nil || len(v.Data) > 64 {
			t.Errorf("read %v%v of %q", v.DType, v.Shape, location)
		}
	})
}
