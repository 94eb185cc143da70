package tracker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
)

// schemaOf returns the schema version of a database.
func schemaOf(t *testing.T, database string) (version int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT max(version) FROM tilth.migrations").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// buildLater builds a program of the next version. It has an additional migration that is compatible with this
// version.
func buildLater(t *testing.T, version int) (program string) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs("../records/postgres/migrations.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest, whole := strings.CutSuffix(string(source), "}\n") // end of the list
	if !whole {
		t.Fatalf("%s does not end with the list of migrations", path)
	}
	later := rest + fmt.Sprintf("\t{usableBy: %d, sql: `ALTER TABLE jobs ADD COLUMN colour text NOT NULL DEFAULT 'grey'`},\n}\n", version)
	changed, overlay := filepath.Join(dir, "migrations.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{changed: later, overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "tilth")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-w", "-overlay", overlay, "-o", program, "github.com/tilth-dev/tilth/cmd/tilth")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestTrackersOfVersionsOneApartServeAFarm simulates a rolling upgrade: trackers of this version and the next share
// the shards and take over each other's, also after the later one migrated the schema. No trial may be lost or
// repeated.
func TestTrackersOfVersionsOneApartServeAFarm(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it builds the program of the next version")
	}
	t.Parallel() // mostly waits
	database := pgserver.DatabaseForTest(t)
	var artifacts []string
	for range someShards {
		artifacts = append(artifacts, t.TempDir())
	}
	earlier := newRivalOf(t, database, someShards, artifacts...)
	earlier.has(someShards)
	version := schemaOf(t, database)
	later := makeRival(t, database, someShards, artifacts...)
	later.program = []string{buildLater(t, version), "tracker", "--data", later.dir, "--listen", later.address(), "--http", "", "--store", database, "--shards", strconv.Itoa(someShards)}
	later.start()
	later.has(someShards / 2)
	earlier.has(someShards / 2)
	if now := schemaOf(t, database); now != version+1 {
		t.Fatalf("the schema is of version %d, after %d", now, version)
	}
	jobs := newWatchedJobs(t, earlier.address()+","+later.address())
	jobs.submit("r0")
	jobs.reach(50)
	earlier.kill()
	later.has(someShards)
	earlier.start() // on the later schema
	earlier.has(someShards / 2)
	later.has(someShards / 2)
	before := jobs.events.Load()
	jobs.submit("r1")
	jobs.reach(before + 100)
	later.kill()
	earlier.has(someShards)
	jobs.check()
}
