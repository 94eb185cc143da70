package records

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// privateMark encloses the owner's name at the start of a private target. The wire refuses control characters, so
// clients cannot name such a target.
const privateMark = "\x01"

// EveryTarget matches all groups, private ones included.
const EveryTarget = "\x00"

// Private returns the target for records of an owner's private jobs, which form groups with bests of their own. An
// empty target matches all of the owner's private groups.
func Private(target, owner string) string { return privateMark + owner + privateMark + target }

// IsPrivate reports whether a target is private.
func IsPrivate(target string) bool { return strings.HasPrefix(target, privateMark) }

// SplitTarget splits a group's target into the device's target and the owner of private records, "" for shared ones.
func SplitTarget(target string) (of, owner string) {
	private, is := strings.CutPrefix(target, privateMark)
	if !is {
		return target, ""
	}
	owner, of, _ = strings.Cut(private, privateMark)
	return of, owner
}

// TargetOf returns the target for a job's records.
func TargetOf(spec *tilthv1.JobSpec) string {
	fingerprint := spec.GetTarget().GetFingerprint()
	if spec.GetPrivate() {
		return Private(fingerprint, spec.GetOwner())
	}
	return fingerprint
}

// NamesOf returns exclusive bounds for the names of a target's groups. An empty target matches all shared groups,
// which sort after the private ones.
func NamesOf(target string) (after, beyond string) {
	const none = "\xff" // not valid in UTF-8
	switch {
	case target == EveryTarget:
		return "", none
	case target == "":
		return "\x02", none
	case IsPrivate(target) && strings.HasSuffix(target, privateMark):
		return target, strings.TrimSuffix(target, privateMark) + "\x02"
	}
	return target + "\x00", target + "\x01"
}

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
