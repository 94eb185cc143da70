package main

import (
	"errors"
	"strings"
	"testing"
)

func TestLongErrorsKeepTheirBeginningAndEnd(t *testing.T) {
	got := oneLine(errors.New("compile a.onnx: " + strings.Repeat("undefined symbol ", 1000) + "\nname another compiler"))
	if len(got) > 1010 || !strings.HasPrefix(got, "compile a.onnx: ") || !strings.HasSuffix(got, "; name another compiler") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
