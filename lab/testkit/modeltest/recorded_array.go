package modeltest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Array is a tensor. Without values it gets made-up ones. A constant becomes an initializer.
type Array struct {
	Type   string   `json:"type"`
	Shape  []int64  `json:"shape"`
	Values []number `json:"values,omitempty"`
	Const  bool     `json:"const,omitempty"`
}

// number is written like JSON's, or as "NaN", "+Inf", "-Inf".
type number string

// UnmarshalJSON takes a JSON number or string as it is written.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = number(strings.Trim(string(data), `"`))
	return nil
}

// Array returns the tensor.
func (r *Array) Array() (*array.Array, error) {
	d := array.ParseDType(r.Type)
	if d == array.Invalid || r.Values != nil && int64(len(r.Values)) != array.Elements(r.Shape) {
		return nil, fmt.Errorf("%d values for %s%v", len(r.Values), r.Type, r.Shape)
	}
	a := array.New(d, r.Shape...)
	for i := range a.Len() {
		switch {
		case r.Values != nil && d.IsFloat():
			v, err := strconv.ParseFloat(string(r.Values[i]), 64)
			if err != nil {
				return nil, err
			}
			a.SetFloat(i, v)
		case r.Values != nil:
			v, err := strconv.ParseInt(string(r.Values[i]), 10, 64)
			if err != nil {
				return nil, err
			}
			a.SetInt(i, v)
		case d.IsFloat():
			a.SetFloat(i, math.Round(1000*math.Sin(float64(i*i%1009)))/1000)
		default:
			a.SetInt(i, i*i%11)
		}
	}
	return a, nil
}
