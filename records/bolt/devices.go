package bolt

import (
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
	return db.view(func(tx *txn) error {
		return tx.table(bucketDevices).each(func(name, value []byte, err error) error {
			row := &storev1.DeviceRow{}
			if err == nil {
				err = tx.table(bucketDevices).parse(name, value, row)
			}
			if tx.skipDamage(err) {
				row = damagedDevice()
			} else if err != nil {
				return err
			}
			visit(string(name), row)
			return nil
		})
	})
}
