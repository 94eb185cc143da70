package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// folderEnv names the environment variable with the test server's folder, for child processes.
const folderEnv = "TILTH_TEST_POSTGRES"

// server is shared by all tests that do not kill it.
var server = pgserver.At(os.Getenv(folderEnv))

// databases lends databases of the server.
var databases = &pgserver.Databases{Prepare: func(address string) error {
	db, err := postgres.Open(address, postgres.Options{})
	if err != nil {
		return err
	}
	return db.Close()
}}

func TestMain(m *testing.M) {
	if storetest.Process(kind) || converting() {
		return
	}
	var err error
	if server, err = pgserver.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	databases.Server = server
	os.Setenv(folderEnv, server.Folder())
	storetest.Checks(2, 20) // a database takes much processor time
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// kind opens databases by folder; each folder contains the address of its database.
var kind = storetest.Kind{
	Prepare: func(t storetest.Tester, folder string) {
		if err := os.WriteFile(filepath.Join(folder, "address"), []byte(databases.Borrow(t)), 0o600); err != nil {
			t.Fatal(err)
		}
	},
	Open:  func(folder string) (records.Store, error) { return openIn(folder, postgres.Options{}) },
	Keeps: true,
}

// openIn opens a folder's database.
func openIn(folder string, opts postgres.Options) (records.Store, error) {
	address, err := os.ReadFile(filepath.Join(folder, "address"))
	if err != nil {
		return nil, err
	}
	return postgres.Open(string(address), opts)
}

// prepared returns a kind whose databases are opened with other options first.
func prepared(first, then postgres.Options) storetest.Kind {
	return storetest.Kind{
		Prepare: func(t storetest.Tester, folder string) {
			kind.Prepare(t, folder)
			s, err := openIn(folder, first)
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		Open:  func(folder string) (records.Store, error) { return openIn(folder, then) },
		Keeps: true,
	}
}

func TestTheDatabaseMeetsTheStoreContract(t *testing.T) {
	t.Parallel() // mostly waits for the server
	storetest.Test(t, kind)
}

func TestTheDatabaseIsWholeAfterAProcessWasKilled(t *testing.T) { storetest.TestCrash(t, kind) }
