package postgres_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

func fresh(t *testing.T) (db *postgres.DB, address string) {
	t.Helper()
	address = databases.Borrow(t)
	return opened(t, address), address
}

func TestSchemaOfALaterVersionIsRefused(t *testing.T) {
	db, address := fresh(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	do(t, address, "INSERT INTO tilth.migrations (version, usable_by) VALUES (99, 99)")
	_, err := postgres.Open(address, postgres.Options{})
	if !errors.Is(err, records.ErrVersion) || !strings.Contains(fmt.Sprint(err), "schema 99 is for trackers of schema 99 or later, this one is of schema 1: start a later version") {
		t.Errorf("it is opened: %v", err)
	}
}

// TestLongestNamesAreStoredInOrder uses names that exceed an index entry, and names that are not text.
func TestLongestNamesAreStoredInOrder(t *testing.T) {
	db, _ := fresh(t)
	text := "é\x01%'\\"
	for len(text) < records.MaxNameBytes {
		text += rand.Text() // incompressible
	}
	long := func(last string) string { return text[:records.MaxNameBytes-1] + last }
	names := []string{long("a"), long("b"), long("c")}
	w := &records.Write{}
	for _, name := range []string{names[2], names[0], names[1], names[0]} {
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: name}})
		w.PutDevice(name, &storev1.DeviceRow{})
		w.AddRecord(storetest.Record(name, "conv", 1, 1))
		w.PutNew(name[records.MaxNameBytes-3:], records.RequestKey(name, name), records.EncodeJob(&tilthv1.JobSpec{}, nil))
	}
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var agents, devices, targets []string
	err := errors.Join(
		db.Agents(func(a *tilthv1.Agent) { agents = append(agents, a.GetSpec().GetName()) }),
		db.Devices(func(name string, _ *storev1.DeviceRow) { devices = append(devices, name) }))
	for after, more := "", true; more; more = after != "" {
		page, next, failed := db.BestPage("", after, 1, 1<<20)
		for _, r := range page {
			targets = append(targets, r.GetTarget())
		}
		after, err = next, errors.Join(err, failed)
	}
	if err != nil || !slices.Equal(agents, names) || !slices.Equal(devices, names) || !slices.Equal(targets, names) {
		t.Errorf("%d agents, %d devices, %d targets, %v", len(agents), len(devices), len(targets), err)
	}
	if id, err := db.JobByRequest(names[1], names[1]); err != nil || !strings.HasSuffix(names[1], id) {
		t.Errorf("the request made %q, %v", id, err)
	}
	if n := len(storetest.List(t, db, names[1], "")); n != 1 {
		t.Errorf("%d records of a target", n)
	}
}

// TestGroupsOfOneTargetAreReadAlone is a regression test: a look-up of one target also read the groups of all
// later targets.
func TestGroupsOfOneTargetAreReadAlone(t *testing.T) {
	db, address := fresh(t)
	storetest.Add(t, db, storetest.Record("a", "conv", 1, 1))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	const others = 20_000
	do(t, address, fmt.Sprintf(`
		INSERT INTO tilth.groups (number, name, workload, best)
			SELECT 1000 + n, ('b' || n)::bytea || '\x00776f726b'::bytea, 'work', best FROM tilth.groups, generate_series(1, %[1]d) AS n;
		INSERT INTO tilth.records (grp, key, message) SELECT 1000 + n, key, message FROM tilth.records, generate_series(1, %[1]d) AS n;
		ANALYZE tilth.groups, tilth.records`, others))
	db = opened(t, address)
	groups, _, err := db.GroupPage("a", "", 10)
	if err != nil || len(groups) != 1 {
		t.Errorf("there are the groups %v, %v", groups, err)
	}
	best, _, err := db.BestPage("a", "", 10, 1<<20)
	if err != nil || len(best) != 1 {
		t.Errorf("there are %d best records, %v", len(best), err)
	}
	if listed := storetest.List(t, db, "a", ""); len(listed) != 1 {
		t.Errorf("there are %d records", len(listed))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var scans, read int
	eventually(t, "the server has counted what was read", func() bool { // at the latest when a session ends
		var sessions int
		ask(t, address, `SELECT (SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()),
			seq_scan + idx_scan, seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = 'tilth' AND relname = 'groups'`,
			&sessions, &scans, &read)
		return sessions == 0 && scans >= 3
	})
	if read > others/10 {
		t.Errorf("%d rows of groups were read, of which one was wanted", read)
	}
}

// TestForgedRowsAreReportedAsDamaged covers rows written by other programs.
func TestForgedRowsAreReportedAsDamaged(t *testing.T) {
	db, address := fresh(t)
	w := &records.Write{}
	w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: "job", State: tilthv1.JobState_JOB_STATE_RUNNING}})
	w.PutBatch("job.0", &storev1.BatchRow{JobId: "job"})
	w.AddRecord(storetest.Record("cpu", "conv", 1, 1))
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		"UPDATE tilth.records SET key = '\\x00'",
		"UPDATE tilth.records SET key = decode(repeat('00', 16), 'hex'), message = '\\xff'",
		"UPDATE tilth.jobs SET message = '\\xff'",
		"UPDATE tilth.batches SET message = '\\xff'",
	} {
		do(t, address, change)
	}
	err := db.List(t.Context(), "", "", func(*tilthv1.Record) error { return nil })
	if !errors.Is(err, records.ErrDamaged) {
		t.Errorf("the records are listed: %v", err)
	}
	if jobs, err := db.OpenJobs(); err != nil || len(jobs) != 1 || !errors.Is(jobs[0].Damage, records.ErrDamaged) {
		t.Errorf("open are %v, %v", jobs, err)
	}
	if jobs, _, err := db.Jobs(records.JobQuery{Max: 1, MaxBytes: 1 << 20}); err != nil || len(jobs) != 1 || !strings.Contains(jobs[0].GetReason(), "damaged") {
		t.Errorf("jobs are %v, %v", jobs, err)
	}
	if batches, err := db.OpenBatches(); err != nil || len(batches) != 1 || !errors.Is(batches[0].Damage, records.ErrDamaged) {
		t.Errorf("batches are %v, %v", batches, err)
	}
}

// TestImportThatIsWholeIsFinishedLater checks that a complete but interrupted import is finished when the database
// is next opened.
func TestImportThatIsWholeIsFinishedLater(t *testing.T) {
	db, address := fresh(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var chunk bytes.Buffer
	for n := range int64(3) {
		if _, err := protodelim.MarshalTo(&chunk, storetest.Record("cpu", "conv", n, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for number, whole := range []bool{true, false} {
		do(t, address, fmt.Sprintf(`INSERT INTO tilth.imports (number, whole) VALUES (%[1]d, %[2]t);
			INSERT INTO tilth.import_chunks (import, number, records) VALUES (%[1]d, 1, '\x%[3]s')`, number+1, whole, hex.EncodeToString(chunk.Bytes())))
		db := opened(t, address)
		if n := len(storetest.List(t, db, "", "")); n != 3 {
			t.Errorf("%d records are there", n)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		chunk.Reset() // a failed import leaves nothing
		if _, err := protodelim.MarshalTo(&chunk, storetest.Record("cpu", "pool", 1, 1)); err != nil {
			t.Fatal(err)
		}
	}
}
