package roofline

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

func TestBytesAreReadFromWhereTheyFit(t *testing.T) {
	m := Rates{FlopPerSecond: 2, Stores: []Store{{"L2", 4096, 1000}, {"memory", MemoryBytes, 10}}}
	for _, c := range []struct {
		name string
		rows int64
		want float64
	}{{"within the cache", 8, 1024/10.0 + 2*512/1000.0}, {"beyond it", 64, 1024/10.0 + 4096/1000.0 + 4096/10.0}} {
		x, k := expr.NewInput("x", array.Float32, c.rows, 16), expr.NewConstant("k", array.Float32, 16, 16)
		sum := expr.ReduceOver("y", expr.Sum, []int64{c.rows, 16}, []int64{16}, func(i, r []expr.Expr) expr.Expr {
			return expr.MulE(x.At(i[0], r[0]), k.At(r[0], i[1]))
		})
		w, err := expr.NewWorkload([]*expr.Tensor{sum})
		if err != nil {
			t.Fatal(err)
		}
		if arithmetic, bytes := m.Limits(w, 10); arithmetic != 5 || bytes != c.want {
			t.Errorf("%s: %v and %v seconds, want 5 and %v", c.name, arithmetic, bytes, c.want)
		}
	}
}

func TestInvalidRatesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "unexpected end of JSON input",
		"{}":                    "0 FLOP/s is not a rate",
		`{"flop_per_second":1}`: "the rates of memory are missing",
		`{"flop_per_second":1,"stores":[{"name":"L2","bytes":-1,"bytes_per_second":1}]}`: "L2: -1 bytes",
		`{"flop_per_second":1,"stores":[{"name":"L2","bytes":1}]}`:                       "L2: 1 bytes at 0 bytes/s",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestMostOfTwoMeasurements(t *testing.T) {
	rates := func(flop, cache, memory float64) Rates {
		return Rates{FlopPerSecond: flop, Stores: []Store{{"L2", 4096, cache}, {"memory", MemoryBytes, memory}}}
	}
	one, other := rates(10, 100, 20), rates(12, 90, 30)
	if got, want := one.Max(other), rates(12, 100, 30); !slices.Equal(got.Stores, want.Stores) || got.FlopPerSecond != 12 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if one.Stores[1].BytesPerSecond != 20 {
		t.Error("a measurement was changed")
	}
	larger := rates(10, 1000, 10)
	larger.Stores[0].Bytes *= 2
	if got := one.Max(larger).Stores[0]; got != one.Stores[0] {
		t.Errorf("the rate of another cache is taken: %+v", got)
	}
}
