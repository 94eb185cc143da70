package bolt

import (
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/records"
)

// JobByRequest implements records.Jobs. In files from before requests had owners the key is the request id alone, and
// the owner comes from the job.
func (db *DB) JobByRequest(owner, requestID string) (id string, err error) {
	err = db.view(func(tx *txn) error {
		requests := tx.table(bucketRequests)
		own, err := requests.get(records.RequestKey(owner, requestID))
		if own != nil || err != nil {
			id = string(own)
			return err
		}
		value, err := requests.get([]byte(requestID))
		if err != nil {
			return err
		}
		if value != nil {
			whose, err := jobOwner(tx, string(value))
			if err != nil && !errors.Is(err, records.ErrNotFound) {
				return err
			}
			if err == nil && whose.Name == owner {
				id = string(value)
				return nil
			}
		}
		return fmt.Errorf("request %q of %q: %w", requestID, owner, records.ErrNotFound)
	})
	return id, err
}

// JobOwner implements records.Jobs.
func (db *DB) JobOwner(id string) (owner records.Owner, err error) {
	err = db.view(func(tx *txn) error {
		owner, err = jobOwner(tx, id)
		return err
	})
	return owner, err
}

func jobOwner(tx *txn, id string) (records.Owner, error) {
	spec, err := tx.table(bucketSpecs).get([]byte(id))
	if err == nil && spec == nil {
		err = fmt.Errorf("job %q: %w", id, records.ErrNotFound)
	}
	return records.OwnerOf(spec), err
}
