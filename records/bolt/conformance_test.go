package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

var kind = storetest.Kind{
	Open: func(folder string) (records.Store, error) {
		return bolt.Open(filepath.Join(folder, "r.db"), bolt.Options{})
	},
	Keeps: true,
}

func TestTheFileMeetsTheStoreContract(t *testing.T) { storetest.Test(t, kind) }

func TestTheFileIsWholeAfterAProcessWasKilled(t *testing.T) { storetest.TestCrash(t, kind) }
