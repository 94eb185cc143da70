package postgres

import (
	"fmt"

	"github.com/tilth-dev/tilth/records"
)

// apply makes one change.
func (t *txn) apply(op records.Op) error {
	switch op := op.(type) {
	case records.PutRow:
		t.putRow(op)
	case records.DropRow:
		t.dropRow(op)
	case records.PutJob:
		t.do(`INSERT INTO jobs (id, message, open, shard) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET message = excluded.message, open = excluded.open`, []byte(op.ID), op.Row, !op.Final, t.shard)
	case records.PutNew:
		t.putNew(op)
	case records.PutProgress:
		t.putProgress(op.JobID, op.Task, op.Row)
	case records.AppendEvent:
		t.putEvent(op.JobID, op.Sequence, op.Row)
	case records.AppendTrials:
		return t.appendTrials(op)
	case records.DropJob:
		return t.dropJob(op.ID)
	case records.DropClosed:
		t.do("DELETE FROM closed_batches WHERE id >= $1 AND id < $2", []byte(op.First), []byte(op.Beyond))
	case records.AddRecord:
		_, err := t.addRecord(op)
		return err
	case records.SuspectBests:
		return t.suspectBests(op)
	default:
		return fmt.Errorf("no such change: %T", op)
	}
	return nil
}

// put stores a row of a table of messages by id.
func (t *txn) put(table, id string, message []byte) {
	t.do("INSERT INTO "+table+" (id, message) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET message = excluded.message", []byte(id), message)
}

func (t *txn) remove(table, id string) { t.do("DELETE FROM "+table+" WHERE id = $1", []byte(id)) }

// putRow stores a row of a table of messages. Names of agents and devices may be too long for a key, so their index
// uses digests.
func (t *txn) putRow(op records.PutRow) {
	switch table := rowTables[op.Kind].name; op.Kind {
	case records.RowClosed:
		t.put(table, op.Key, op.Row)
	case records.RowAgent, records.RowDevice:
		t.do("INSERT INTO "+table+" (name, message, shard) VALUES ($1, $2, $3) ON CONFLICT (shard, sha256(name)) DO UPDATE SET message = excluded.message",
			[]byte(op.Key), op.Row, t.shard)
	default:
		t.do("INSERT INTO "+table+" (id, message, shard) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET message = excluded.message",
			[]byte(op.Key), op.Row, t.shard)
	}
}

func (t *txn) dropRow(op records.DropRow) {
	table := rowTables[op.Kind].name
	if op.Kind == records.RowAgent || op.Kind == records.RowDevice {
		t.do("DELETE FROM "+table+" WHERE sha256(name) = sha256($1) AND shard = $2", []byte(op.Key), t.shard)
		return
	}
	t.remove(table, op.Key)
}

func (t *txn) putNew(op records.PutNew) {
	t.put("specs", op.ID, op.Spec)
	t.do("INSERT INTO requests (key, job) VALUES ($1, $2) ON CONFLICT (sha256(key)) DO UPDATE SET job = excluded.job",
		op.Request, []byte(op.ID))
	for i, p := range op.Progress {
		t.putProgress(op.ID, uint32(i), p)
	}
	for _, task := range op.Tasks {
		t.putWorkload(task.GetWorkloadDigest(), task.GetWorkload())
	}
}

func (t *txn) putProgress(job string, task uint32, message []byte) {
	t.do("INSERT INTO progress (job, task, message) VALUES ($1, $2, $3) ON CONFLICT (job, task) DO UPDATE SET message = excluded.message",
		[]byte(job), int64(task), message)
}

func (t *txn) putWorkload(digest string, canonical []byte) {
	if canonical == nil {
		canonical = []byte{} // nil would be NULL
	}
	t.do("INSERT INTO workloads (digest, canonical) VALUES ($1, $2) ON CONFLICT DO NOTHING", []byte(digest), canonical)
}

func (t *txn) putEvent(job string, sequence uint64, message []byte) {
	t.do("INSERT INTO events (job, sequence, message) VALUES ($1, $2, $3) ON CONFLICT (job, sequence) DO UPDATE SET message = excluded.message",
		[]byte(job), int64(sequence), message)
}

// appendTrials adds the records of one group and the row of their events.
func (t *txn) appendTrials(op records.AppendTrials) error {
	g, err := t.groups.of(t, op.Group)
	if err != nil {
		return err
	}
	added := make([]added, len(op.Records))
	for i, e := range op.Records {
		at := place{g.number, e.Key}
		if t.there[at] {
			at.key = records.KeyOfTrial(e.Measurement, op.Row.GetEvent().GetTrial().GetBatchId())
		}
		t.there[at] = true
		added[i].key, added[i].entry = at.key, e
		op.Row.Trials[i].RecordKey = at.bytes()
	}
	t.putEvent(op.JobID, op.Sequence, records.Encode(op.Row))
	return t.addEntries(g, added)
}

// addRecord adds a record unless it exists. The transaction must have looked it up before.
func (t *txn) addRecord(op records.AddRecord) (isNew bool, err error) {
	if len(op.Workload) > 0 {
		t.putWorkload(op.Group.Workload, op.Workload)
	}
	g, err := t.groups.of(t, op.Group)
	if err != nil {
		return false, err
	}
	at := place{g.number, op.Record.Key}
	if t.there[at] {
		return false, nil
	}
	t.there[at] = true
	return true, t.addEntries(g, []added{{at.key, op.Record}})
}

// added is a record with the key under which it is stored.
type added struct {
	key   records.Key
	entry records.Entry
}

// addEntries stores records of a group under unused keys; records are never overwritten. If one refutes a best record,
// the next best replaces that.
func (t *txn) addEntries(g *group, all []added) error {
	keys, messages := make([][]byte, len(all)), make([][]byte, len(all))
	for i := range all {
		keys[i], messages[i] = all[i].key[:], all[i].entry.Row
	}
	t.do("INSERT INTO records (grp, key, message) SELECT $1, * FROM unnest($2::bytea[], $3::bytea[]) ON CONFLICT DO NOTHING",
		g.number, keys, messages)
	changed := false
	for _, a := range all {
		m := a.entry.Measurement
		switch {
		case records.Verified(m):
			changed = g.best.Offer(a.key, m) || changed
		case records.Disqualifies(m) && g.best.HasCandidate(m.GetCandidate().GetDigest()):
			if err := g.choose(t); err != nil {
				return err
			}
			changed = true
		}
	}
	if changed {
		t.do("UPDATE groups SET best = $2 WHERE number = $1", g.number, g.keys())
	}
	return nil
}

// dropJob removes an ended job, except for what Sweep removes.
func (t *txn) dropJob(id string) error {
	key := []byte(id)
	// Keep the number, so that it is never reused.
	t.do("UPDATE tracker SET last_job = greatest(last_job, $1) WHERE shard = $2", key, t.shard)
	t.do("INSERT INTO dropped (id, shard) VALUES ($1, $2) ON CONFLICT DO NOTHING", key, t.shard)
	for _, table := range []string{"jobs", "specs", "ended"} {
		t.remove(table, id)
	}
	t.do("DELETE FROM requests WHERE job = $1", key)
	return nil
}
