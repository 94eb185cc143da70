package records

import (
	"strings"

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
