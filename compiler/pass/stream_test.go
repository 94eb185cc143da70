package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestWholeVectorsOfStreamedOutputsAreStoredPastTheCaches: two of a row of twenty are, the rest of it is not.
func TestWholeVectorsOfStreamedOutputsAreStoredPastTheCaches(t *testing.T) {
	f := unrolled(t, "input t0 f32[2,24]\nmap t1 f32[2,24] = (neg [t0 i0 i1])\noutput t1\n", "vectorize 0 1\nstream 0\n")
	kerneltest.Golden(t, "stream/before", f)
	f = pass.Stream(f, func(d array.DType) int64 { return 32 / d.Bytes() })
	kerneltest.Golden(t, "stream/after", f)
	if !f.Streams {
		t.Error("the kernel does not tell that it streams")
	}
}

// TestVectorsAtOddPlacesAreStoredAsUsual: rows of twenty begin within vectors.
func TestVectorsAtOddPlacesAreStoredAsUsual(t *testing.T) {
	f := unrolled(t, "input t0 f32[2,20]\nmap t1 f32[2,20] = (neg [t0 i0 i1])\noutput t1\n", "vectorize 0 1\nstream 0\n")
	if f = pass.Stream(f, func(d array.DType) int64 { return 32 / d.Bytes() }); f.Streams {
		t.Errorf("vectors at odd places are streamed:\n%s", f.Text())
	}
}
