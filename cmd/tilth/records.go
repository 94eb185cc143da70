package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tuner/recordsource"
)

func newRecords(a *app) *cobra.Command {
	return branch("records", "Look up, list, export, import, exchange and prune measurements",
		newRecordsBest(a), newRecordsList(a), newRecordsExport(a), newRecordsImport(a), newRecordsSync(a), newRecordsPrune(a), newRecordsVerify(a), newRecordsCompact(a), newRecordsDoctor(a))
}

// recordsName is the name of the records file in the user's or a tracker's data folder.
const recordsName = "tilth.db"

// recordsFlag adds --records.
func recordsFlag(c *cobra.Command, records *string) {
	c.Flags().StringVar(records, "records", "", "records `file` (default $XDG_DATA_HOME/tilth/tilth.db)")
}

// recordsPath returns the given records file or the user's default.
func recordsPath(asked string) (string, error) {
	if asked == stdio {
		return "", usagef("--records -: name a file, since records cannot be a stream: see 'tilth records export'")
	}
	if recordsource.IsStatic(asked) {
		return "", usagef("--records %s: this command needs a records file: 'tilth records sync' makes one of an export", asked)
	}
	if asked != "" {
		return asked, nil
	}
	dir, err := dataDir()
	return filepath.Join(dir, recordsName), err
}
