package farm

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
)

func TestEveryKindOpensAStore(t *testing.T) {
	_, address := pgserver.ForTest(t)
	for _, k := range StoreKinds() {
		choice := k.Name
		if k.Check != nil {
			choice = address
		}
		s, err := k.Open(choice, filepath.Join(t.TempDir(), "r.db"))
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
		if named, err := StoreKindOf(choice); err != nil || named.Name != k.Name || !strings.Contains(StoreHelp(), k.About) {
			t.Errorf("%s is found as %+v, %v", k.Name, named, err)
		}
	}
}

func TestUnknownKindOfStoreIsRefused(t *testing.T) {
	for choice, want := range map[string]string{
		"paper":                      `store "paper" is not known; use bolt or memory or postgres://USER@HOST:PORT/DATABASE`,
		"paper://ana:secret@host":    "store is not known",
		"bolt://here":                "store is not known",
		"postgres":                   "is not postgres://USER@HOST:PORT/DATABASE",
		"postgres://ana@host:no/db":  "is not postgres://USER@HOST:PORT/DATABASE",
		"postgres://ana:secret@h/db": "has a password",
		"postgresql://h/db?user=ana&password=secret": "has a password",
	} {
		if _, err := StoreKindOf(choice); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", choice, err, want)
		}
	}
}
