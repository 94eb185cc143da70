package farm

import (
	"errors"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/objects"
	"github.com/tilth-dev/tilth/records"
)

// awayOf returns the unreachable service that caused an error, in words that do not reveal its location, or
// nil.
func awayOf(err error) error {
	for _, of := range []error{records.ErrAway, artifact.ErrAway} {
		if errors.Is(err, of) {
			return of
		}
	}
	return nil
}

// isAway reports whether an error means that a server is unreachable.
func isAway(err error) bool { return awayOf(err) != nil }

// comesBack reports whether an error of a store is transient. Until the process has served or stood by, its
// address may be wrong. Later, all errors of opening are transient, except those caused by changes to the
// database.
func comesBack(err error, began, opening bool) bool {
	if !began {
		return isAway(err) && !objects.WrongAddress(err) || errors.Is(err, records.ErrInUse)
	}
	return opening && passes(err) || isAway(err)
}

// passes reports whether an error of opening a store, after the process has begun, is worth a retry: the
// database was unreachable. All other errors come from changes to the database meanwhile.
func passes(err error) bool {
	return !errors.Is(err, records.ErrShards) && !errors.Is(err, records.ErrVersion) && !errors.Is(err, records.ErrUnfinished)
}
