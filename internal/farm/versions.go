package farm

import (
	"log/slog"
	"sync"

	"github.com/tilth-dev/tilth/records"
)

// versions warns once about a store of a later version, which this program can use.
type versions struct{ said sync.Once }

func (v *versions) tell(log *slog.Logger, store records.Store) {
	of, is := store.(records.Versioned)
	if !is {
		return
	}
	if schema, own := of.Schema(); schema > own {
		v.said.Do(func() {
			log.Info("the schema of the database is of a later version, which this tracker may use: bring this tracker to that version, too", "schema", schema, "own", own)
		})
	}
}
