package aot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// TestManifestsAreBounded covers lists that take a byte per element in the file and hundreds in memory, and those
// whose elements are compared with each other.
func TestManifestsAreBounded(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Repeat("{},", maxManifestValues)
	_, err = DecodeManifest(fmt.Appendf(nil, `{"format":%d,"calls":[%s{}]}`, Format, list))
	if want := fmt.Sprintf("%s has %d commas, more than the limit of %d", manifestName, maxManifestValues+1, maxManifestValues); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	m := Manifest{Target: machine, Inputs: make([]Tensor, maxManifestTensors), Extents: make([]Extent, 1)}
	want := fmt.Sprintf("%s has %d inputs, outputs and extents, more than the limit of %d", manifestName, maxManifestTensors+1, maxManifestTensors)
	if err := m.check(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
