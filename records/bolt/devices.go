package bolt

import (
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
