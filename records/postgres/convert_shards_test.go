package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// shards opens the shards of a database one after another and calls do with each.
func (p place) shards(t *testing.T, count int, do func(shard int, s records.Store) error) {
	t.Helper()
	for shard := range count {
		s, err := p.shard(t.Context(), shard, count)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(do(shard, s), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// held returns the open jobs, batches and devices of a store, and the number of records.
func held(t *testing.T, s records.Store) (jobs, batches, devices []string, stored int) {
	t.Helper()
	open, err := s.OpenJobs()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range open {
		jobs = append(jobs, j.ID)
	}
	under, err := s.OpenBatches()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range under {
		batches = append(batches, b.ID)
	}
	err = s.Devices(func(name string, d *storev1.DeviceRow) { devices = append(devices, name+" "+d.GetCordon().GetReason()) })
	if err == nil {
		err = s.List(t.Context(), "", "", func(*tilthv1.Record) error {
			stored++
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(jobs)
	slices.Sort(batches)
	return jobs, batches, devices, stored
}

// TestDatabaseOfSeveralShardsIsConvertedBothWays converts a sharded database to a file, with interruptions, and
// back. Rows that every shard has occur once in the file.
func TestDatabaseOfSeveralShardsIsConvertedBothWays(t *testing.T) {
	const shards = 3
	from, file, back := newPlace(t, "postgres", t.TempDir()), newPlace(t, "bolt", t.TempDir()), newPlace(t, "postgres", t.TempDir())
	var jobs, batches [shards][]string
	from.shards(t, shards, func(shard int, s records.Store) error {
		w := &records.Write{}
		for n := range 2 {
			id := fmt.Sprintf("job-%08d-%s", n+1, s.Generation())
			batch := fmt.Sprintf("%s.%08d-%s", id, 1, s.Generation())
			w.PutNew(id, records.RequestKey("ana", fmt.Sprint("r", shard, n)), &records.NewJob{Spec: []byte{}})
			w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: id, State: tilthv1.JobState_JOB_STATE_QUEUED}})
			w.PutBatch(batch, &storev1.BatchRow{JobId: id})
			jobs[shard], batches[shard] = append(jobs[shard], id), append(batches[shard], batch)
		}
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: "board"}, Session: fmt.Sprint(shard)})
		w.PutDevice("board", &storev1.DeviceRow{Cordon: &tilthv1.Cordon{Reason: fmt.Sprint("of shard ", shard)}})
		w.AddRecord(storetest.Record("cpu", "conv", int64(shard), 0.5))
		return s.Commit(w).Wait(t.Context())
	})
	for count, ended := 1, false; !ended; count++ {
		left := count
		_, err := convert(t.Context(), t, from, file, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
			return small{a, 2}, failing{b, &left, count%2 == 0}
		})
		if ended = err == nil; !ended && !errors.Is(err, errInterrupted) {
			t.Fatal(err)
		}
	}
	file.use(t, func(s records.Store) error {
		gotJobs, gotBatches, devices, stored := held(t, s)
		if want := slices.Concat(jobs[:]...); len(gotJobs) != len(want) || slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(gotJobs, id) }) {
			t.Errorf("the file has the jobs %q, want %q", gotJobs, want)
		}
		if len(gotBatches) != 2*shards || fmt.Sprint(devices) != "[board of shard 0]" || stored != shards {
			t.Errorf("the file has the batches %q, the devices %q and %d records", gotBatches, devices, stored)
		}
		return nil
	})
	if _, err := convert(t.Context(), t, file, back, nil); err != nil {
		t.Fatal(err)
	}
	_, err := back.shard(t.Context(), 0, shards-1)
	refuses(t, err, records.ErrShards, "it has jobs of shard 2: start it with --shards 3 or more")
	back.shards(t, shards, func(shard int, s records.Store) error {
		gotJobs, gotBatches, devices, stored := held(t, s)
		if !slices.Equal(gotJobs, jobs[shard]) || !slices.Equal(gotBatches, batches[shard]) {
			t.Errorf("shard %d has the jobs %q and batches %q, want %q and %q", shard, gotJobs, gotBatches, jobs[shard], batches[shard])
		}
		if fmt.Sprint(devices) != "[board of shard 0]" || stored != shards { // a cordon applies to all shards
			t.Errorf("shard %d has the devices %q and %d records", shard, devices, stored)
		}
		return nil
	})
}

func TestDatabaseWhoseShardHasATrackerIsNotConverted(t *testing.T) {
	from, file := newPlace(t, "postgres", t.TempDir()), newPlace(t, "bolt", t.TempDir())
	from.shards(t, 2, func(int, records.Store) error { return nil })
	s, err := from.shard(t.Context(), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = convert(t.Context(), t, from, file, nil)
	refuses(t, err, records.ErrLocked, "stop the tracker first")
}
