package bolt

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// dropJob removes an ended job, except for what Sweep removes.
func (tx *txn) dropJob(id string) error {
	key := []byte(id)
	var row storev1.JobRow
	if err := lookUp(tx, bucketJobs, id, &row); err == nil && len(row.GetRequestKey()) > 0 {
		if err := tx.table(bucketRequests).remove(row.GetRequestKey()); err != nil {
			return err
		}
	}
	meta := tx.table(bucketMeta)
	if last, err := meta.get(keyLastJob); err != nil || string(last) < id {
		if err := meta.put(keyLastJob, []byte(id)); err != nil { // job numbers are never reused
			return err
		}
	}
	if err := tx.table(bucketDropping).put(key, nil); err != nil {
		return err
	}
	for _, bucket := range [][]byte{bucketJobs, bucketSpecs, bucketOpen, bucketEnded} {
		if err := tx.table(bucket).remove(key); err != nil {
			return err
		}
	}
	return nil
}

// removedAtOnce bounds the rows removed by one transaction, since it delays others.
const removedAtOnce = 1000

// Sweep implements records.Jobs.
func (db *DB) Sweep(ctx context.Context) error {
	for {
		var id []byte
		err := db.view(func(tx *txn) error {
			k, _ := tx.table(bucketDropping).cursor().First()
			id = bytes.Clone(k)
			return nil
		})
		if err != nil || id == nil {
			return err
		}
		if err := db.maintain(func(tx *txn) error { return tx.sweep(id) }).Wait(ctx); err != nil {
			return err
		}
	}
}

// sweep removes some leftover rows of a job, and its mark once none remain.
func (tx *txn) sweep(id []byte) error {
	left := removedAtOnce
	for _, of := range []struct {
		bucket []byte
		behind byte // follows the job's id in a key
	}{{bucketProgress, 0}, {bucketEvents, 0}, {bucketBatches, '.'}, {bucketClosed, '.'}} {
		prefix := append(bytes.Clone(id), of.behind)
		c := tx.table(of.bucket).cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Seek(prefix) {
			if left--; left < 0 {
				return nil
			}
			if err := c.Delete(); err != nil {
				return err
			}
		}
	}
	return tx.table(bucketDropping).remove(id)
}

// damagedDevice returns the row for a device whose decisions are lost. It keeps the device out of work.
func damagedDevice() *storev1.DeviceRow {
	return &storev1.DeviceRow{Cordon: &tilthv1.Cordon{
		By: "tracker", Reason: "what was decided of it is damaged in the records file: look at it, then uncordon it",
	}}
}

// Devices implements records.Store.
func (db *DB) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return visitAll(db, bucketDevices, visit, damagedDevice)
}

// Agents implements records.Store.
func (db *DB) Agents(visit func(*tilthv1.Agent)) error {
	return visitAll(db, bucketAgents, func(_ string, a *tilthv1.Agent) { visit(a) }, nil)
}

// EndedJobs implements records.Jobs.
func (db *DB) EndedJobs(visit func(id string, row *storev1.EndedRow)) error {
	return visitAll(db, bucketEnded, visit, nil)
}

// visitAll decodes and visits the rows of a bucket. instead, unless nil, returns what to visit for a damaged row.
func visitAll[M any, P interface {
	*M
	proto.Message
}](db *DB, bucket []byte, visit func(key string, message P), instead func() P) error {
	return db.view(func(tx *txn) error {
		rows := tx.table(bucket)
		return rows.each(func(key, value []byte, err error) error {
			row := P(new(M))
			if err == nil {
				err = rows.parse(key, value, row)
			}
			if !tx.skipDamage(err) {
				visit(string(key), row)
			} else if instead != nil {
				visit(string(key), instead())
			}
			return nil
		})
	})
}
