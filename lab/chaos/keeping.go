package chaos

import (
	"fmt"
	"path/filepath"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/postgres"
)

// keeping is where a farm keeps what it must not forget.
type keeping struct {
	// data is the folder of artifacts and, unless there is a database, of the records file.
	data string
	// database is the address of a database with shards shards; empty for a file.
	database string
	shards   int
}

// open opens the store to look at what it has. No tracker has it.
func (k keeping) open() (records.Store, error) {
	if k.database != "" {
		return postgres.Open(k.database, postgres.Options{Shards: k.shards})
	}
	return bolt.OpenReadOnly(k.file(), bolt.Options{})
}

func (k keeping) file() string { return filepath.Join(k.data, recordsName) }

// consistent checks the pages of the storage engine, if it supports that.
func (k keeping) consistent() error {
	if k.database != "" {
		return nil
	}
	return consistent(k.file())
}

// artifacts are the folder of a shard's artifacts.
func (k keeping) artifacts(shard int) string {
	path := filepath.Join(k.data, artifactsName)
	if shard > 0 {
		path = fmt.Sprint(path, "-", shard)
	}
	return path
}

// allArtifacts are the paths of all whole artifacts.
func (k keeping) allArtifacts() (paths []string) {
	for shard := range max(k.shards, 1) {
		paths = append(paths, storedArtifacts(k.artifacts(shard))...)
	}
	return paths
}
