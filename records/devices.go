package records

import (
	"go.etcd.io/bbolt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
)

// PutDevice stores what was decided of a device.
func (w *Write) PutDevice(name string, row *storev1.DeviceRow) {
	w.put(bucketDevices, []byte(name), encode(row))
}

// DropDevice removes what was decided of a device.
func (w *Write) DropDevice(name string) { w.remove(bucketDevices, []byte(name)) }

// Devices calls visit with every device of which something was decided, by name.
func (db *DB) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return db.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketDevices)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(name, value []byte) error {
			row := &storev1.DeviceRow{}
			if err := decode(value, row); err != nil {
				return err
			}
			visit(string(name), row)
			return nil
		})
	})
}
