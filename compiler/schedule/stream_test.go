package schedule

import (
	"strings"
	"testing"
)

func TestStreamRefusals(t *testing.T) {
	const chain = `tilth-workload 1
input t0 f32[4,8]
map t1 f32[4,8] = (add [t0 i0 i1] 0x1p+00:f32)
map t2 f32[4,8] = (mul [t1 i0 i1] [t1 i0 i1])
sum t3 f32[4] over 8 = [t0 i0 r0]
map t4 f32[4,8]@[16,1] = (add [t0 i0 i1] 0x1p+01:f32)
output t1 t2 t3 t4
`
	cases := map[string]string{
		"stream 0":           "stage 0 is read by another",
		"stream 1\nstream 1": "stage 1 is already streamed",
		"stream 2":           "stage 2 is a reduction",
		"stream 3":           "stage 3 is a part of a larger tensor",
		"stream 9":           "there is no stage 9",
	}
	for trace, want := range cases {
		_, err := Replay(parseWorkload(t, chain), []byte(traceHeader+"\n"+trace+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", trace, err, want)
		}
	}
	if err := New(parseWorkload(t, convText)).Stream(0); err == nil || !strings.Contains(err.Error(), "is not an output") {
		t.Errorf("got %v", err)
	}
}
