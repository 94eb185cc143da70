package chaos

import (
	"fmt"
	"path/filepath"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/postgres"
)

// farmData locates the stored data of a farm.
type farmData struct {
	// data is the folder of artifacts and, without a database, of the records file.
	data string
	// database is the address of a database with shards shards, or empty for a file.
	database string
	shards   int
}

// open opens the store for inspection. No tracker may have it open.
func (k farmData) open() (records.Store, error) {
	if k.database != "" {
		return postgres.Open(k.database, postgres.Options{Shards: k.shards})
	}
	return bolt.OpenReadOnly(k.file(), bolt.Options{})
}

func (k farmData) file() string { return filepath.Join(k.data, recordsName) }

// consistent checks the pages of the storage engine, if supported.
func (k farmData) consistent() error {
	if k.database != "" {
		return nil
	}
	return consistent(k.file())
}

// artifacts returns the folder of a shard's artifacts.
func (k farmData) artifacts(shard int) string {
	path := filepath.Join(k.data, artifactsName)
	if shard > 0 {
		path = fmt.Sprint(path, "-", shard)
	}
	return path
}

// allArtifacts returns the paths of all complete artifacts.
func (k farmData) allArtifacts() (paths []string) {
	for shard := range max(k.shards, 1) {
		paths = append(paths, storedArtifacts(k.artifacts(shard))...)
	}
	return paths
}
