package records_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/postgres"
)

// stores lists all stores.
var stores = map[string]storeKind{
	"memory": {
		open: func(string) (records.Store, error) { return bolt.OpenMemory(bolt.Options{}) },
	},
	"file": {
		open: func(folder string) (records.Store, error) {
			return bolt.Open(filepath.Join(folder, "r.db"), bolt.Options{})
		},
		keeps: true,
	},
	"database": {prepare: newDatabase, open: openDatabase(postgres.Options{}), keeps: true},
	"shard": {
		prepare: func(t tester, folder string) {
			newDatabase(t, folder)
			s, err := openDatabase(postgres.Options{Shards: 3})(folder)
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		open:  openDatabase(postgres.Options{Shards: 3, Shard: 1}),
		keeps: true, slow: "the whole contract of stores, on a database of three shards",
	},
	"database of a later version": {
		prepare: newLaterDatabase, open: openDatabase(postgres.Options{}),
		keeps: true, slow: "the whole contract of stores, on a database of a later version",
	},
}

func TestEveryStoreMeetsTheContract(t *testing.T) {
	storetest.Checks(5, 100)
	for name, k := range stores {
		if k.prepare == nil {
			t.Run(name, k.check)
		}
	}
	storetest.Checks(2, 20) // a database takes much processor time
	for name, k := range stores {
		if k.prepare != nil {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // mostly waits for the server
				k.check(t)
			})
		}
	}
}

func TestStoreIsWholeAfterAProcessWasKilled(t *testing.T) {
	for _, name := range []string{"file", "database"} {
		t.Run(name, func(t *testing.T) { stores[name].checkWithKills(t, name) })
	}
}

// databases lends databases of a server, which the first of them starts and TestMain stops.
var databases = &pgserver.Databases{Prepare: func(address string) error {
	db, err := postgres.Open(address, postgres.Options{})
	if err != nil {
		return err
	}
	return db.Close()
}}

// TestMain lets this binary act as a process that is killed.
func TestMain(m *testing.M) {
	if name, folder, ok := strings.Cut(os.Getenv(crashEnv), " "); ok {
		fmt.Fprintln(os.Stderr, stores[name].write(folder))
		os.Exit(1)
	}
	goleak.VerifyTestMain(pgserver.Tests{M: m})
}

// newDatabase writes the address of a new database to a folder.
func newDatabase(t tester, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "address"), []byte(databases.Borrow(t)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newLaterDatabase is newDatabase with the schema of a later version that this one may use.
func newLaterDatabase(t tester, folder string) {
	t.Helper()
	newDatabase(t, folder)
	address, err := os.ReadFile(filepath.Join(folder, "address"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), string(address))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `SET search_path TO tilth;
		ALTER TABLE jobs ADD COLUMN colour text NOT NULL DEFAULT 'grey', ADD COLUMN note bytea;
		ALTER TABLE agents ADD COLUMN colour text NOT NULL DEFAULT 'grey';
		CREATE TABLE colours (name text PRIMARY KEY);
		INSERT INTO migrations (version, usable_by) SELECT max(version) + 1, max(version) FROM migrations`); err != nil {
		t.Fatal(err)
	}
}

// openDatabase opens the database of a folder.
func openDatabase(o postgres.Options) func(folder string) (records.Store, error) {
	return func(folder string) (records.Store, error) {
		address, err := os.ReadFile(filepath.Join(folder, "address"))
		if err != nil {
			return nil, err
		}
		return postgres.Open(string(address), o)
	}
}
