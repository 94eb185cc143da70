package aot

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func TestInputsOfFilesAreAdapted(t *testing.T) {
	of := func(d array.DType, values ...int64) *array.Array {
		a := array.New(d, int64(len(values)))
		for k, v := range values {
			a.SetInt(int64(k), v)
		}
		return a
	}
	one := &Manifest{Model: "one", Inputs: []Tensor{{Name: "x", DType: "i64"}}}
	small := &Manifest{Model: "small", Inputs: []Tensor{{Name: "x", DType: "u8"}}}
	long := &Manifest{Model: "long", Inputs: []Tensor{{Name: "x", DType: "u64"}}}
	two := &Manifest{Model: "two", Inputs: []Tensor{{Name: "x", DType: "i64"}, {Name: "y", DType: "f32"}}}
	for name, c := range map[string]struct {
		m    *Manifest
		a    *array.Array
		want array.DType
	}{
		"wider":                 {one, of(array.Int32, 1, -7), array.Int64},
		"narrower, which fits":  {small, of(array.Int64, 0, 255), array.Uint8},
		"too large":             {small, of(array.Int64, 256), array.Int64},
		"negative":              {long, of(array.Int32, -1), array.Int32},
		"too large for a sign":  {one, of(array.Uint64, -1), array.Uint64},
		"not an integer":        {one, array.New(array.Float32, 2), array.Float32},
		"already of that type":  {one, of(array.Int64, 3), array.Int64},
		"unsigned, which fits":  {one, of(array.Uint64, 3), array.Int64},
		"for an input of bools": {&Manifest{Inputs: []Tensor{{Name: "x", DType: "bool"}}}, of(array.Int64, 1), array.Int64},
	} {
		got, err := c.m.Adapt(map[string]*array.Array{"": c.a})
		if err != nil || got["x"].DType != c.want {
			t.Errorf("%s: %v with error %v, want %v", name, got, err, c.want)
			continue
		}
		for k := range c.a.Len() {
			if got["x"].Int(k) != c.a.Int(k) {
				t.Errorf("%s: element %d is %d, want %d", name, k, got["x"].Int(k), c.a.Int(k))
			}
		}
	}
	if _, err := two.Adapt(map[string]*array.Array{"": of(array.Int64, 1)}); err == nil || !strings.Contains(err.Error(), `model two has 2 inputs, "x" (i64[]), "y" (f32[]): give them by name`) {
		t.Errorf("an array without a name for two inputs: error %v", err)
	}
	if got, err := two.Adapt(map[string]*array.Array{"y": array.New(array.Float32)}); err != nil || len(got) != 1 {
		t.Errorf("an input is missing: %v, %v", got, err)
	}
}
