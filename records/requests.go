package records

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ownerField is the number of JobSpec.owner.
const ownerField = 2

// RequestKey is the key of an owner's request. Two owners may choose the same one. Neither has a zero byte.
func RequestKey(owner, requestID string) []byte {
	return fmt.Appendf(nil, "\x00%s\x00%s", owner, requestID)
}

// JobByRequest returns the id of the job that an owner's request made. ErrNotFound when there is none. In files from
// before requests had owners the key is the request's alone, and the job tells whose it was.
func (db *DB) JobByRequest(owner, requestID string) (id string, err error) {
	err = db.view(func(tx *txn) error {
		requests := tx.table(bucketRequests)
		own, err := requests.get(RequestKey(owner, requestID))
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
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if err == nil && whose == owner {
				id = string(value)
				return nil
			}
		}
		return fmt.Errorf("request %q of %q: %w", requestID, owner, ErrNotFound)
	})
	return id, err
}

// JobOwner returns the owner of a job. ErrNotFound when there is none. It does not decode the job's workloads.
func (db *DB) JobOwner(id string) (owner string, err error) {
	err = db.view(func(tx *txn) error {
		owner, err = jobOwner(tx, id)
		return err
	})
	return owner, err
}

func jobOwner(tx *txn, id string) (string, error) {
	spec, err := tx.table(bucketSpecs).get([]byte(id))
	if err == nil && spec == nil {
		err = fmt.Errorf("job %q: %w", id, ErrNotFound)
	}
	return ownerOf(spec), err
}

// ownerOf finds the owner in an encoded specification, which has its fields in their order; empty when there is none.
func ownerOf(spec []byte) string {
	for len(spec) > 0 {
		number, kind, n := protowire.ConsumeTag(spec)
		if n < 0 || number > ownerField {
			return ""
		}
		spec = spec[n:]
		if number == ownerField && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(spec)
			return string(value)
		}
		if n = protowire.ConsumeFieldValue(number, kind, spec); n < 0 {
			return ""
		}
		spec = spec[n:]
	}
	return ""
}
