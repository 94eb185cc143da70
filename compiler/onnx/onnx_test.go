package onnx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tilth-dev/tilth/compiler/array"
)

// small returns a model that uses every part of the format that is written.
func small() *Model {
	attrs := []*Attribute{
		{Name: "f", Type: AttrFloat, Float: 0.5},
		{Name: "i", Type: AttrInt, Int: -3},
		{Name: "s", Type: AttrString, String: "SAME_UPPER"},
		{Name: "t", Type: AttrTensor, Tensor: &Tensor{Name: "", Value: array.FromInt64([]int64{1, -1}, 2)}},
		{Name: "fs", Type: AttrFloats, Floats: []float32{1, 2.5}},
		{Name: "is", Type: AttrInts, Ints: []int64{1, -1, 1 << 40}},
		{Name: "ss", Type: AttrStrings, Strings: []string{"a", ""}},
		{Name: "g", Type: AttrGraph, Graph: &Graph{Name: "inner"}},
	}
	return &Model{
		IRVersion: 8, ProducerName: "test", ProducerVersion: "1", Opsets: []Opset{{Version: 13}, {"ai.onnx.ml", 2}},
		Graph: &Graph{
			Name:         "small",
			Nodes:        []*Node{{Name: "n", Op: "Clip", Inputs: []string{"x", "", "w"}, Outputs: []string{"y"}, Attributes: attrs}},
			Initializers: []*Tensor{{Name: "w", Value: array.FromFloat32([]float32{1, 2, 3, 4}, 2, 2)}},
			Inputs: []*ValueInfo{{
				Name: "x", DType: array.Float32, HasShape: true, Shape: []Dim{{Value: -1, Param: "batch"}, {Value: 3}, {Value: -1}},
			}},
			Outputs: []*ValueInfo{{Name: "y", DType: array.Float32}},
		},
		Functions: []*Function{{
			Name: "Scaled", Domain: "local", Inputs: []string{"x"}, Outputs: []string{"y"}, Attributes: []string{"alpha"},
			Defaults: []*Attribute{{Name: "beta", Type: AttrFloat, Float: 2}}, Opsets: []Opset{{Version: 13}},
			Nodes: []*Node{{
				Op: "LeakyRelu", Inputs: []string{"x"}, Outputs: []string{"y"},
				Attributes: []*Attribute{{Name: "alpha", Ref: "alpha", Type: AttrFloat}},
			}},
		}},
	}
}

func TestModelsSurviveARoundTrip(t *testing.T) {
	want := small()
	data := want.Encode()
	got, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); got.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("its digest is %s", got.Digest)
	}
	want.Digest = got.Digest
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got.Graph, want.Graph)
	}
	if !bytes.Equal(got.Encode(), data) {
		t.Error("a second encoding differs from the first")
	}
	if OpsetOf(got.Opsets, "") != 13 || OpsetOf(got.Opsets, "ai.onnx.ml") != 2 || OpsetOf(got.Opsets, "other") != 0 {
		t.Error("wrong opset versions")
	}
}

// tensorWith returns a TensorProto of the given type and shape with one more field.
func tensorWith(code int64, dims []int64, add func(*message)) []byte {
	var m message
	m.text(8, "t")
	for _, d := range dims {
		m.int(1, d)
	}
	m.int(2, code)
	add(&m)
	return m.encoded()
}

func packed(number protowire.Number, values ...uint64) func(*message) {
	return func(m *message) {
		var b []byte
		for _, v := range values {
			b = protowire.AppendVarint(b, v)
		}
		m.bytes(number, b)
	}
}

func TestTypedTensorFields(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want []float64
		d    array.DType
	}{
		{"packed int64", tensorWith(7, []int64{2}, packed(7, 5, ^uint64(0))), []float64{5, -1}, array.Int64},
		{"int8 in int32", tensorWith(3, []int64{2}, packed(5, 5, ^uint64(1))), []float64{5, -2}, array.Int8},
		{"bool in int32", tensorWith(9, []int64{2}, packed(5, 0, 1)), []float64{0, 1}, array.Bool},
		{"half bits in int32", tensorWith(10, []int64{1}, packed(5, 0x3c00)), []float64{1}, array.Float16},
		{"unpacked int32", tensorWith(6, []int64{2}, func(m *message) { m.int(5, 4); m.int(5, -4) }), []float64{4, -4}, array.Int32},
		{"uint64", tensorWith(13, []int64{1}, packed(11, 7)), []float64{7}, array.Uint64},
		{"float", tensorWith(1, []int64{1}, func(m *message) { m.float(4, 2.5) }), []float64{2.5}, array.Float32},
		{"scalar", tensorWith(6, nil, packed(5, 9)), []float64{9}, array.Int32},
		{"uint4", tensorWith(21, []int64{3}, func(m *message) { m.bytes(9, []byte{0xf1, 0x08}) }), []float64{1, 15, 8}, array.Uint8},
		{"int4", tensorWith(22, []int64{2, 2}, func(m *message) { m.bytes(9, []byte{0xf1, 0x78}) }), []float64{1, -1, -8, 7}, array.Int8},
		{"int4 in int32", tensorWith(22, []int64{3}, packed(5, 0x2f, 0x08)), []float64{-1, 2, -8}, array.Int8},
		{"float8e4m3fn", tensorWith(17, []int64{6}, func(m *message) { m.bytes(9, []byte{0x38, 0xc0, 0x7e, 0x01, 0x81, 0x07}) }),
			[]float64{1, -2, 448, 0x1p-9, -0x1p-9, 7 * 0x1p-9}, array.Float32},
		{"float8e4m3fnuz", tensorWith(18, []int64{3}, func(m *message) { m.bytes(9, []byte{0x40, 0xff, 0x01}) }), []float64{1, -240, 0x1p-10}, array.Float32},
		{"float8e5m2", tensorWith(19, []int64{4}, func(m *message) { m.bytes(9, []byte{0x3c, 0xfb, 0x01, 0xfc}) }), []float64{1, -57344, 0x1p-16, math.Inf(-1)}, array.Float32},
		{"float8e5m2fnuz in int32", tensorWith(20, []int64{3}, packed(5, 0x40, 0xff, 0x01)), []float64{1, -57344, 0x1p-17}, array.Float32},
		{"empty", tensorWith(7, []int64{0}, func(*message) {}), nil, array.Int64},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := new(reader).tensor(c.data)
			if err != nil {
				t.Fatal(err)
			}
			if got.Value.DType != c.d || got.Value.Len() != int64(len(c.want)) {
				t.Fatalf("got %v%v", got.Value.DType, got.Value.Shape)
			}
			for k, w := range c.want {
				if g := got.Value.Float(int64(k)); g != w {
					t.Errorf("element %d is %v, want %v", k, g, w)
				}
			}
		})
	}
}

// attributeWithout returns a model with an attribute that has a type and no value.
func attributeWithout(kind AttributeType) []byte {
	var a, n, g, m message
	a.text(1, "a")
	a.int(20, int64(kind))
	n.message(5, &a)
	g.message(1, &n)
	m.message(7, &g)
	return m.encoded()
}

func TestReadRefuses(t *testing.T) {
	broken := func(change func(*Model)) []byte {
		m := small()
		change(m)
		return m.Encode()
	}
	var withTensor = func(tensor []byte) []byte {
		var g, m message
		g.bytes(5, tensor)
		m.message(7, &g)
		return m.encoded()
	}
	deep := &Graph{}
	for range maxNesting + 2 {
		deep = &Graph{Nodes: []*Node{{Op: "If", Attributes: []*Attribute{{Name: "then", Type: AttrGraph, Graph: deep}}}}}
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no graph: the file is not an ONNX model"},
		{"text", []byte("this is no model at all"), "broken protobuf"},
		{"cut short", small().Encode()[:60], "broken protobuf"},
		{"nested too deep", broken(func(m *Model) { m.Graph = deep }), "nested deeper than 16"},
		{"string tensor", withTensor(tensorWith(8, []int64{1}, func(*message) {})), "element type 8 string is not supported"},
		{"short data", withTensor(tensorWith(1, []int64{1 << 40}, func(m *message) { m.bytes(9, []byte("abcd")) })),
			"needs 4398046511104 bytes but has 4"},
		{"four bits cut short", withTensor(tensorWith(22, []int64{5}, func(m *message) { m.bytes(9, []byte("ab")) })),
			`tensor "t": 5 elements of 4 bits, shape [5], need 3 bytes but have 2`},
		{"eight bits cut short", withTensor(tensorWith(17, []int64{3}, func(m *message) { m.bytes(9, []byte("ab")) })), "3 elements of 8 bits, shape [3], need 3 bytes but have 2"},
		{"four bits too long", withTensor(tensorWith(21, []int64{4}, packed(5, 1, 2, 3))), "4 elements of 4 bits, shape [4], need 2 bytes but have 3"},
		{"four bits too many", withTensor(tensorWith(21, []int64{1 << 40}, func(m *message) { m.bytes(9, []byte("ab")) })), "need 549755813888 bytes but have 2"},
		{"negative extent", withTensor(tensorWith(1, []int64{-1}, func(*message) {})), "negative extent"},
		{"overflowing shape", withTensor(tensorWith(1, []int64{1 << 40, 1 << 40}, func(*message) {})), "too large"},
		{"data in the wrong field", withTensor(tensorWith(1, []int64{1}, packed(7, 1))), "are in field 7, want 4"},
		{"attribute without its tensor", attributeWithout(AttrTensor), `attribute "a" of type 4 has no value`},
		{"attribute without its graph", attributeWithout(AttrGraph), `attribute "a" of type 5 has no value`},
		{"high rank", withTensor(tensorWith(1, make([]int64, 17), func(*message) {})), "rank 17 is over the limit of 16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small().Encode())
	f.Add(tensorWith(7, []int64{2}, packed(7, 5, 6)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(data)
		if err != nil {
			return
		}
		for _, tensor := range m.Graph.Initializers {
			if err := tensor.Value.Check(); err != nil {
				t.Error(err)
			}
		}
		if _, err := Read(m.Encode()); err != nil {
			t.Errorf("the encoded model cannot be read again: %v", err)
		}
	})
}
