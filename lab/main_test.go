package main

import (
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
)

// TestMain lets this binary act as the laboratory's program in scripts.
func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"lab": main}) }

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: records sets, trains cost models, and simulates farms over a file and a database")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"database": database, "truncate": truncate, "empty": empty,
		},
	})
}

// database starts a PostgreSQL server for the script and sets a variable to the address of an empty database:
// database NAME.
func database(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: database NAME")
	}
	server, err := pgserver.New()
	ts.Check(err)
	ts.Defer(func() { ts.Check(server.Stop()) })
	address, err := server.Database()
	ts.Check(err)
	ts.Setenv(args[0], address)
}

// truncate truncates a file: truncate BYTES FILE.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate BYTES FILE")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[1]), n))
}

// empty checks that a folder has no entries: empty FOLDER.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: empty FOLDER")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(entries) > 0 {
		ts.Fatalf("%s has %v", args[0], entries)
	}
}
