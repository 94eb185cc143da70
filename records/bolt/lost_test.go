package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/records"
)

// TestFileWithoutItsFirstPagesBlocksNobody is a regression test: bbolt kept its locks after the fault, so all later
// reads and commits blocked.
func TestFileWithoutItsFirstPagesBlocksNobody(t *testing.T) {
	for name, first := range map[string]func(*DB) error{
		"found by a look-up": func(db *DB) error { _, err := db.JobRow("job"); return err },
		"found by a commit": func(db *DB) error {
			w := &records.Write{}
			w.CloseBatch("batch", nil)
			return db.Commit(w).Wait(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.db")
			db, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			if err := first(db); !errors.Is(err, records.ErrDamaged) {
				t.Errorf("at first: %v", err)
			}
			calls := make(chan error)
			go func() {
				_, err := db.JobRow("job")
				calls <- err
				w := &records.Write{}
				w.CloseBatch("batch", nil)
				calls <- db.Commit(w).Wait(t.Context())
				calls <- db.Close()
			}()
			for _, call := range []string{"a look-up", "a commit", "closing"} {
				select {
				case err := <-calls:
					if !errors.Is(err, records.ErrDamaged) {
						t.Errorf("then %s: %v", call, err)
					}
				case <-time.After(10 * time.Minute):
					t.Fatalf("%s waits for ever", call)
				}
			}
		})
	}
}
