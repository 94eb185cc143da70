package expr

import "testing"

// TestOperationsOfFloatsAndOfIntegers: each where it is computed, and none of indices, casts,
// selections and constants.
func TestOperationsOfFloatsAndOfIntegers(t *testing.T) {
	for text, want := range map[string][2]float64{
		"input t0 f32[8,16]\nsum t1 f32[8] over 16 = (mul [t0 i0 r0] [t0 i0 r0])\noutput t1\n":                                              {256, 0},
		"input t0 u8[8,16]\nconstant t1 i8[16,4]\nsum t2 i32[8,4] over 16 = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 r0 i1]))\noutput t2\n": {0, 1024},
		"input t0 i32[8]\nsum t1 i32[4] over 2 = (select (lt (add i0 r0) 3) [t0 (add i0 r0)] 0:i32)\noutput t1\n":                           {0, 8},
		"input t0 f32[8]\nconstant t1 u8[8]\nmap t2 f32[8] = (mul [t0 i0] (sub (cast f32 [t1 i0]) 0x1p+03:f32))\noutput t2\n":               {8, 0},
		"input t0 i32[8]\nmap t1 f32[8] = (mul (cast f32 [t0 i0]) 0x1p-01:f32)\noutput t1\n":                                                {8, 0},
	} {
		w, err := Parse("tilth-workload 1\n" + text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := [2]float64{w.Flop(), w.IntegerOps()}; got != want {
			t.Errorf("%v operations, want %v\n%s", got, want, text)
		}
	}
}

// TestTotalsFollowCounts: what lies beyond limits is neither computed nor moved.
func TestTotalsFollowCounts(t *testing.T) {
	w := parsed(t, openRows)
	n := w.Inputs[1]
	for count, want := range map[int64]Totals{
		4: {Flop: 16 + 16, Bytes: 4 * (16 + 16)},
		2: {Flop: 4 + 4, Bytes: 4 * (4 + 4)},
		0: {},
		9: {Flop: 16 + 16, Bytes: 4 * (16 + 16)}, // there is no room for more
	} {
		if got := w.Totals(map[*Tensor]int64{n: count}); got != want {
			t.Errorf("with a count of %d: %+v, want %+v", count, got, want)
		}
	}
	if got, want := w.Totals(nil), w.Totals(map[*Tensor]int64{n: 4}); got != want {
		t.Errorf("with no count: %+v, want that of the most, %+v", got, want)
	}
}

// TestBytesOfASharedOperandCountOnce, though each of its elements is read for several.
func TestBytesOfASharedOperandCountOnce(t *testing.T) {
	w := parsed(t, `tilth-workload 1
input t0 f32[3,64]
input t1 f32[100]
input t2 i64[]<=100
sum t3 f32[3] over 100 while r0 [t2] = (mul [t0 i0 0] [t1 r0])
output t3
`)
	if got, want := w.Totals(map[*Tensor]int64{w.Inputs[2]: 10}).Bytes, int64(4*(3+10+3)); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}
