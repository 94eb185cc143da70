package packagerun

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzOrder checks that accepted requests have a code file for each package and can be encoded again.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"packages":[{"path":"/m.tar","name":"m.tar"}],"repeat":3,"number":1,"machine":"e30=","objects":["/object.so"]}`))
	f.Add([]byte(`{"packages":[{"path":"/m.tar"}],"objects":[]}`))
	f.Add([]byte(`{"packages":[],"repeat":-1}`))
	f.Add([]byte(`{"number":1e9}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := readOrder(bytes.NewReader(text))
		if err != nil {
			return
		}
		if len(o.Packages) != len(o.Objects) || o.Repeat < 0 || o.Number < 0 || o.Profile < 0 {
			t.Errorf("read %+v", o)
		}
		again, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readOrder(bytes.NewReader(again)); err != nil {
			t.Errorf("%s was read, %s is not: %v", text, again, err)
		}
	})
}

// FuzzAnswer checks forged answers of a package: an accepted result fits the request, and a failure has one line.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"result":{"packages":[{"samples":[1,2],"manifest":{}}]}}`))
	f.Add([]byte(`{"result":{"packages":[{"samples":[1,-2],"manifest":{}}]}}`))
	f.Add([]byte(`{"result":{"packages":[{},{}]}}`))
	f.Add([]byte(`{"error":"no such\u001b[2J file\n"}`))
	f.Add([]byte(`[]`))
	request := Request{Packages: []Package{{Path: "/m.tar", Name: "m.tar"}}, Repeat: 2}
	f.Fuzz(func(t *testing.T, said []byte) {
		result, err := readAnswer(said, request)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Errorf("the failure is %q", err)
			}
			return
		}
		if result == nil {
			return
		}
		if len(result.Packages) != 1 || len(result.Packages[0].Samples) != 2 {
			t.Errorf("%s answers %+v", said, request)
		}
		if _, err := json.Marshal(result); err != nil {
			t.Errorf("the result cannot be written: %v", err)
		}
	})
}
