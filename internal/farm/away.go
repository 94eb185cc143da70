package farm

import (
	"errors"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/objects"
	"github.com/tilth-dev/tilth/records"
)

// awayOf is what is away by an error, in words that say nothing of where it is; nil = nothing is.
func awayOf(err error) error {
	for _, of := range []error{records.ErrAway, artifact.ErrAway} {
		if errors.Is(err, of) {
			return of
		}
	}
	return nil
}

// isAway says whether an error is of a server that is away.
func isAway(err error) bool { return awayOf(err) != nil }

// comesBack says whether what is wrong with a store passes. Before a process began to serve or to stand by, its
// address may be wrong; later all passes that came of opening it, but for what somebody made of the database.
func comesBack(err error, began, opening bool) bool {
	if !began {
		return isAway(err) && !objects.WrongAddress(err) || errors.Is(err, records.ErrInUse)
	}
	return opening && passes(err) || isAway(err)
}

// passes says whether an error of opening a store passes, once the process has begun: the database was away. All
// others are of what somebody made of the database meanwhile.
func passes(err error) bool {
	return !errors.Is(err, records.ErrShards) && !errors.Is(err, records.ErrVersion) && !errors.Is(err, records.ErrUnfinished)
}
