package bolt

import (
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// damagedDevice keeps a device out of work of which nobody knows any more what was decided.
func damagedDevice() *storev1.DeviceRow {
	return &storev1.DeviceRow{Cordon: &tilthv1.Cordon{
		By: "tracker", Reason: "what was decided of it is damaged in the records file: look at it, then uncordon it",
	}}
}

// Devices calls visit with every device of which something was decided, by name.
func (db *DB) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return db.view(func(tx *txn) error {
		return tx.table(bucketDevices).each(func(name, value []byte, err error) error {
			row := &storev1.DeviceRow{}
			if err == nil {
				err = tx.table(bucketDevices).parse(name, value, row)
			}
			if tx.passOver(err) {
				row = damagedDevice()
			} else if err != nil {
				return err
			}
			visit(string(name), row)
			return nil
		})
	})
}
