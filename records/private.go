package records

import (
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// privateMark is around the owner of private records in their target's name, which it begins. What comes over the wire
// has no control characters, so that nobody names such a target.
const privateMark = "\x01"

// EveryTarget is the target that matches all groups, those of private records too.
const EveryTarget = "\x00"

// Private is the target under which the records of an owner's private jobs for a target are kept. They make groups of
// their own, with bests of their own. An empty target is all of the owner's.
func Private(target, owner string) string { return privateMark + owner + privateMark + target }

// IsPrivate says whether a target is one of private records.
func IsPrivate(target string) bool { return strings.HasPrefix(target, privateMark) }

// SplitTarget returns the target of a group as devices have it, and whose its records are; empty = they are shared.
func SplitTarget(target string) (of, owner string) {
	private, is := strings.CutPrefix(target, privateMark)
	if !is {
		return target, ""
	}
	owner, of, _ = strings.Cut(private, privateMark)
	return of, owner
}

// TargetOf is the target under which the records of a job are kept.
func TargetOf(spec *tilthv1.JobSpec) string {
	fingerprint := spec.GetTarget().GetFingerprint()
	if spec.GetPrivate() {
		return Private(fingerprint, spec.GetOwner())
	}
	return fingerprint
}

// NamesOf bounds the names of a target's groups: they are after the first and before the second. An empty target
// matches all of shared records; those of private ones are before them.
func NamesOf(target string) (after, beyond string) {
	const none = "\xff" // no name in UTF-8 begins with it
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
