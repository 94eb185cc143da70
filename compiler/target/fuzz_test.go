package target

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzDecode decodes descriptions of any bytes: accepted ones are valid, survive a round trip, and have names of
// bounded length.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"x86-64-v3", "x86-64-v4", "arm64"} {
		t, err := Parse(name, 2)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(t.Encode())
		f.Add(bytes.Replace(t.Encode(), []byte(`"threads": 2`), []byte(`"threads": -2`), 1))
		f.Add(append(t.Encode(), t.Encode()...))
	}
	f.Add([]byte(`{"arch":"arm64","features":["neon","neon"]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		target, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Decode(target.Encode())
		if err != nil || !reflect.DeepEqual(again, target) && len(target.CPU.Features) > 0 {
			t.Errorf("%s was read, and became %v, %v", text, again, err)
		}
		if n := len(target.DeviceClass()) + len(target.Fingerprint()); n > 4*len(text)+1024 {
			t.Errorf("names of %d bytes of a description of %d", n, len(text))
		}
	})
}
