package registry_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/records/registry"
	"github.com/tilth-dev/tilth/records/storetest"
)

func TestEveryKindOpensAStore(t *testing.T) {
	for _, k := range registry.All() {
		s, err := k.Open(filepath.Join(t.TempDir(), "r.db"))
		if err != nil {
			t.Fatal(err)
		}
		storetest.Add(t, s, storetest.Record("cpu", "conv", 1, 0.5))
		if n := len(storetest.List(t, s, "", "")); n != 1 {
			t.Errorf("%s has %d records", k.Name, n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if named, err := registry.Of(k.Name); err != nil || named.Name != k.Name || !strings.Contains(registry.Help(), k.About) {
			t.Errorf("%s is found as %+v, %v", k.Name, named, err)
		}
	}
	if _, err := registry.Of("paper"); err == nil || err.Error() != `store "paper" is not known; use bolt or memory` {
		t.Errorf("a store that is not there: %v", err)
	}
}
