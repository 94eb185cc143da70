package records_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
)

func FuzzReader(f *testing.F) {
	var file bytes.Buffer
	w, _ := records.NewWriter(&file)
	if err := errors.Join(w.Write(storetest.Record("cpu", "conv", 1, 0.5)), w.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte(`{"format":"tilth-records","version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := records.NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		for {
			record, err := r.Read()
			if errors.Is(err, io.EOF) || err != nil {
				return
			}
			if err := records.Validate(record); err != nil {
				t.Errorf("read an invalid record: %v", err)
			}
		}
	})
}
