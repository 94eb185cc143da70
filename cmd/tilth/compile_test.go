package main

import (
	"bytes"
	"testing"
	"time"
)

// TestCompileShowsItsProgress: a terminal's line is rewritten and erased; elsewhere lines come at intervals.
func TestCompileShowsItsProgress(t *testing.T) {
	for live, want := range map[bool]string{
		true:  "\rcompiling kernels 1/4\rcompiling kernels 2/4\rcompiling kernels 3/4\r\x1b[K",
		false: "compiling kernels 2/4\n",
	} {
		var out bytes.Buffer
		now := time.Unix(0, 0)
		show := compileProgress(&out, live, func() time.Time { return now })
		for compiled := range 4 {
			now = now.Add(progressEvery * 2 / 3)
			show(compiled+1, 4)
		}
		if out.String() != want {
			t.Errorf("on a terminal %v: %q, want %q", live, out.String(), want)
		}
	}
}
