package postgres

import (
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Agents implements records.Store.
func (db *DB) Agents(visit func(*tilthv1.Agent)) error {
	return visitAll(db, "agents", "name", func(_ string, a *tilthv1.Agent) { visit(a) })
}

// Devices implements records.Store.
func (db *DB) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return visitAll(db, "devices", "name", visit)
}

// EndedJobs implements records.Jobs.
func (db *DB) EndedJobs(visit func(id string, row *storev1.EndedRow)) error {
	return visitAll(db, "ended", "id", visit)
}

// visitAll decodes and visits the shard's rows of a table of messages, in the order of their keys.
func visitAll[M any, P interface {
	*M
	proto.Message
}](db *DB, table, key string, visit func(key string, message P)) error {
	return db.all(func(v *view) error {
		var name, message []byte
		return v.query("SELECT "+key+", message FROM "+table+" WHERE shard = $1 ORDER BY "+key, []any{db.shard}, []any{&name, &message}, func() error {
			row := P(new(M))
			err := decode(message, row)
			if err == nil {
				visit(string(name), row)
			}
			return err
		})
	})
}
