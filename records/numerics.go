package records

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Levels is how many levels of numerics there are, each of which allows what those before it do.
const Levels = 3

// levels are their names. A candidate's level is the least that allows it; empty, as in records from before there were
// levels, is the first.
var levels = [Levels]string{wire.NumericsStrict, wire.NumericsDefault, wire.NumericsFast}

// Level is a level's number; ok is false when there is none of that name.
func Level(name string) (level int, ok bool) {
	if name == "" {
		return 0, true
	}
	level = slices.Index(levels[:], name)
	return level, level >= 0
}

// LevelName is the name of a level's number.
func LevelName(level int) string { return levels[level] }

// AllowedLevel is the number of the level that bounds a look-up; empty means the last. ErrInvalid when there is none
// of that name.
func AllowedLevel(numerics string) (int, error) {
	if numerics == "" {
		return Levels - 1, nil
	}
	level, ok := Level(numerics)
	if !ok {
		return 0, fmt.Errorf("%w: numerics %q is not one of %v", ErrInvalid, numerics, levels)
	}
	return level, nil
}

// ValidNumerics says whether there is a level of that name; empty is one.
func ValidNumerics(name string) bool {
	_, ok := Level(name)
	return ok
}
