package postgres_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
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
	if converting() {
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
