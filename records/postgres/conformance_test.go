package postgres_test

import (
	"errors"
	"fmt"
	"io/fs"
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

func TestMain(m *testing.M) {
	if storetest.Process(kind) {
		return
	}
	var err error
	if server, err = pgserver.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv(folderEnv, server.Folder())
	storetest.Checks(4, 20) // a database takes 0.1 s of processor time
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
	Open: func(folder string) (records.Store, error) {
		path := filepath.Join(folder, "address")
		address, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			var made string
			made, err = server.Database()
			address = []byte(made)
			err = errors.Join(err, os.WriteFile(path, address, 0o600))
		}
		if err != nil {
			return nil, err
		}
		return postgres.Open(string(address), postgres.Options{})
	},
	Keeps: true,
}

func TestTheDatabaseKeepsWhatStoresPromise(t *testing.T) {
	t.Parallel() // mostly waits for the server
	storetest.Test(t, kind)
}

func TestTheDatabaseIsWholeAfterAProcessWasKilled(t *testing.T) { storetest.TestCrash(t, kind) }
