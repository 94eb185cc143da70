package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestFunctionsOfBytesAreLookedUp: functions of one quantised value, or of a loaded one, become lookups; those with
// another operand or with few operations do not.
func TestFunctionsOfBytesAreLookedUp(t *testing.T) {
	const quantised = "(cast u8 (cast i32 (round (min (max [t0 i0] 0x0p+00:f32) 0x1.fep+07:f32))))"
	const one, two = "input t0 f32[4]\nmap t1 ", "input t0 f32[4]\ninput t1 u8[4]\nmap t2 "
	for name, text := range map[string]string{
		"exponential": one + "u8[4] = (cast u8 (mul (exp (neg (cast f32 " + quantised + "))) 0x1p+07:f32))\noutput t1\n",
		"twice":       one + "u8[4] = (cast u8 (mul (exp (neg (cast f32 " + quantised + "))) (cast f32 " + quantised + ")))\noutput t1\n",
		"loaded":      "input t0 u8[4]\nmap t1 i8[4] = (cast i8 (exp (cast f32 [t0 i0])))\noutput t1\n",
		"operands":    two + "u8[4] = (cast u8 (mul (exp (cast f32 " + quantised + ")) (cast f32 [t1 i0])))\noutput t2\n",
		"few":         one + "u8[4] = (cast u8 (mul (cast f32 " + quantised + ") 0x1p-01:f32))\noutput t1\n",
	} {
		kerneltest.Golden(t, "lookup/"+name, pass.Lookup(unrolled(t, text, "vectorize 0 0\n"), pass.ManyLookups))
	}
}
