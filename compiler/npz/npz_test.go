package npz

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func samples() map[string]*array.Array {
	arrays := map[string]*array.Array{
		"data":   array.FromFloat32([]float32{1, 2, 3, 4, 5, 6}, 2, 3),
		"vector": array.FromInt64([]int64{-1, 1 << 60}, 2),
		"scalar": array.FromFloat32([]float32{7}),
		"empty":  array.New(array.Float64, 0, 4),
	}
	for _, d := range descriptors {
		arrays["of "+d.String()] = array.New(d, 2, 2)
	}
	return arrays
}

func TestArchivesSurviveARoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npz")
	want := samples()
	var archive bytes.Buffer
	if err := Write(&archive, want); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range want {
		if g := got[name]; g == nil || g.DType != a.DType || !reflect.DeepEqual(g.Shape, a.Shape) || !bytes.Equal(g.Data, a.Data) {
			t.Errorf("array %q came back as %+v", name, g)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d arrays came back, want %d", len(got), len(want))
	}
}

func TestFileOfOneArrayHasNoName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	var data bytes.Buffer
	if err := writeArray(&data, array.FromInt64([]int64{1, 2}, 2)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(path); err != nil || len(got) != 1 || got[""].Int(1) != 2 {
		t.Errorf("%v with error %v", got, err)
	}
}

func TestWriteRefusesWhatNumpyLacks(t *testing.T) {
	err := Write(io.Discard, map[string]*array.Array{"x": array.New(array.BFloat16, 1)})
	if err == nil || !strings.Contains(err.Error(), `array "x": numpy has no type for bf16`) {
		t.Errorf("got %v", err)
	}
}

// npy returns an array with a header as given.
func npy(version byte, header string, data []byte) []byte {
	b := append([]byte(magic), version, 0, byte(len(header)), byte(len(header)>>8))
	if version > 1 {
		b = append(b, 0, 0)
	}
	return append(append(b, header...), data...)
}

func TestHeaders(t *testing.T) {
	six := []byte{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name string
		data []byte
		want []int64
		err  string
	}{
		{"version 1", npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", six), []int64{1, 2, 3, 4, 5, 6}, ""},
		{"version 2", npy(2, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", six), []int64{1, 2, 3, 4, 5, 6}, ""},
		{"version 3", npy(3, "{'descr': '|i1', 'fortran_order': False, 'shape': (6,), }", six), []int64{1, 2, 3, 4, 5, 6}, ""},
		{"fortran order", npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", six), []int64{1, 3, 5, 2, 4, 6}, ""},
		{"version 4", npy(4, "", nil), nil, "format version 4 is not supported"},
		{"no magic", []byte("hello, numpy"), nil, "not a .npy array"},
		{"big-endian", npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (), }", six), nil, `element type ">f4" is not supported`},
		{"objects", npy(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", six), nil, `element type "|O" is not supported`},
		{"structure", npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", six), nil, "invalid header"},
		{"code", npy(1, "{'descr': __import__('os')}", nil), nil, "invalid header"},
		{"too few elements", npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", six), nil, "needs 48 bytes but has 6"},
		{"huge", npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }", nil), nil, "over the limit"},
		{"overflow", npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", nil), nil, "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := readArray(bytes.NewReader(c.data))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for k, w := range c.want {
				if g := a.Int(int64(k)); g != w {
					t.Errorf("element %d is %d, want %d", k, g, w)
				}
			}
		})
	}
}

func TestReadInflates(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("x.npy") // deflated
	if err != nil {
		t.Fatal(err)
	}
	if err := writeArray(f, array.New(array.Float32, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || got["x"].Len() != 1000 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadRefusesOtherArchives(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("readme.txt"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{b.String(): `entry "readme.txt" is not a .npy array`, "junk": "not an .npz archive"} {
		if _, err := Read(strings.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, samples()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", []byte{1, 2, 3, 4, 5, 6}))
	f.Fuzz(func(t *testing.T, data []byte) {
		arrays, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			arrays = map[string]*array.Array{}
		}
		if a, err := readArray(bytes.NewReader(data)); err == nil {
			arrays["alone"] = a
		}
		for name, a := range arrays {
			if err := a.Check(); err != nil {
				t.Errorf("array %q: %v", name, err)
			}
		}
	})
}
