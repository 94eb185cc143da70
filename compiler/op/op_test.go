package op

import (
	"slices"
	"testing"
)

// TestSupportedIsTheCallersOwn: appending to it and sorting once changed the table itself.
func TestSupportedIsTheCallersOwn(t *testing.T) {
	more := append(Supported(), "Aardvark")
	slices.Sort(more)
	if !slices.Equal(Supported(), names) || slices.Contains(names, "Aardvark") || !slices.IsSorted(names) {
		t.Errorf("the table became %v", names)
	}
	for _, name := range names {
		if _, ok := refused[name]; ok {
			t.Errorf("%s is supported and refused", name)
		}
	}
}
