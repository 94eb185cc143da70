package postgres

import (
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Agents implements records.Store.
func (db *DB) Agents(visit func(*tilthv1.Agent)) error {
	return db.all(func(v *view) error {
		var message []byte
		return v.query("SELECT message FROM agents WHERE shard = $1 ORDER BY name", []any{db.shard}, []any{&message}, func() error {
			a := &tilthv1.Agent{}
			err := decode(message, a)
			if err == nil {
				visit(a)
			}
			return err
		})
	})
}

// Devices implements records.Store.
func (db *DB) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return db.all(func(v *view) error {
		var name, message []byte
		return v.query("SELECT name, message FROM devices WHERE shard = $1 ORDER BY name", []any{db.shard}, []any{&name, &message}, func() error {
			row := &storev1.DeviceRow{}
			err := decode(message, row)
			if err == nil {
				visit(string(name), row)
			}
			return err
		})
	})
}
