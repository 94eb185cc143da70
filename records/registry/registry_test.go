package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records/registry"
)

// server is shared by all tests, with its databases.
var (
	server    *pgserver.Server
	databases *pgserver.Databases
)

func TestMain(m *testing.M) {
	if converting() {
		return
	}
	var err error
	if server, err = pgserver.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	databases = &pgserver.Databases{Server: server, Prepare: func(address string) error {
		kind, err := registry.Of(address)
		if err != nil {
			return err
		}
		s, err := kind.Open(address, "")
		if err != nil {
			return err
		}
		return s.Close()
	}}
	storetest.Checks(2, 10) // a database takes much processor time
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestEveryKindOpensAStore(t *testing.T) {
	address := databases.Borrow(t)
	for _, k := range registry.All() {
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
		if named, err := registry.Of(choice); err != nil || named.Name != k.Name || !strings.Contains(registry.Help(), k.About) {
			t.Errorf("%s is found as %+v, %v", k.Name, named, err)
		}
	}
}

func TestAStoreThatIsNotThereIsRefused(t *testing.T) {
	for choice, want := range map[string]string{
		"paper":                      `store "paper" is not known; use bolt or memory or postgres://USER@HOST:PORT/DATABASE`,
		"paper://ana:secret@host":    "store is not known",
		"bolt://here":                "store is not known",
		"postgres":                   "is not postgres://USER@HOST:PORT/DATABASE",
		"postgres://ana@host:no/db":  "is not postgres://USER@HOST:PORT/DATABASE",
		"postgres://ana:secret@h/db": "has a password",
		"postgresql://h/db?user=ana&password=secret": "has a password",
	} {
		if _, err := registry.Of(choice); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", choice, err, want)
		}
	}
}
