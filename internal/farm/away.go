package farm

import (
	"errors"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/objects"
	"github.com/tilth-dev/tilth/records"
)

// unreachableService returns the unreachable service that caused an error, in words that do not reveal its location,
// or nil.
func unreachableService(err error) error {
	for _, of := range []error{records.ErrAway, artifact.ErrAway} {
		if errors.Is(err, of) {
			return of
		}
	}
	return nil
}

// isUnreachable reports whether an error means that a server is unreachable.
func isUnreachable(err error) bool { return unreachableService(err) != nil }

// isTransient reports whether an error of a store is transient. Until the process has served or stood by, its
// address may be wrong. Later, all errors of opening are transient, except those caused by changes to the
// database.
func isTransient(err error, began, opening bool) bool {
	if !began {
		return isUnreachable(err) && !objects.WrongAddress(err) || errors.Is(err, records.ErrInUse)
	}
	return opening && isRetryable(err) || isUnreachable(err)
}

// isRetryable reports whether an error of opening a store, after the process has begun, is worth a retry: the
// database was unreachable. All other errors come from changes to the database meanwhile.
func isRetryable(err error) bool {
	return !errors.Is(err, records.ErrShards) && !errors.Is(err, records.ErrVersion) && !errors.Is(err, records.ErrUnfinished)
}
