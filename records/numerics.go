package records

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Levels is the number of levels of numerics. Each level allows everything that the previous levels allow.
const Levels = 3

// levels are the levels' names. A candidate's level is the lowest that allows it. Records from before levels existed
// have an empty name, which means the first.
var levels = [Levels]string{wire.NumericsStrict, wire.NumericsDefault, wire.NumericsFast}

// Level returns the number of a named level; ok is false for an unknown name.
func Level(name string) (level int, ok bool) {
	if name == "" {
		return 0, true
	}
	level = slices.Index(levels[:], name)
	return level, level >= 0
}

// LevelName returns the name of a level.
func LevelName(level int) string { return levels[level] }

// AllowedLevel returns the level that bounds a look-up; an empty name means the last. It returns ErrInvalid for an
// unknown name.
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

// ValidNumerics reports whether name is a level or empty.
func ValidNumerics(name string) bool {
	_, ok := Level(name)
	return ok
}
