package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Group identifies a group of records: the target's fingerprint and the workload's digest.
type Group struct{ Target, Workload string }

// Name returns the group's name. Names sort by target, then by workload.
func (g Group) Name() string { return g.Target + "\x00" + g.Workload }

// GroupOf parses a group's name.
func GroupOf(name []byte) Group {
	target, workload, _ := bytes.Cut(name, []byte{0})
	return Group{Target: string(target), Workload: string(workload)}
}

// Complete sets the fields of a stored record that its group implies, except the workload.
func (g Group) Complete(r *tilthv1.Record) {
	r.Target, r.WorkloadDigest = g.Target, g.Workload
	CutMeasurement(r.GetMeasurement())
}

// NoBest returns ErrNotFound for a group without a best record.
func (g Group) NoBest() error {
	return fmt.Errorf("best record of workload %s for target %s: %w", g.Workload, g.Target, ErrNotFound)
}

// Key identifies a record within its group by time and identity. Keys sort by the time of measurement.
type Key [wire.RecordKeyBytes]byte

// KeyOf returns the key of a measurement. Measurements of a group with equal keys are the same measurement.
func KeyOf(m *tilthv1.Measurement) Key {
	return keyOf(m, m.GetCandidate().GetDigest()+"\x00"+m.GetDevice())
}

// KeyOfTrial returns the key for a measurement whose regular key is taken: the candidate was measured again by a
// device whose clock stands still, or by one that impersonates it.
func KeyOfTrial(m *tilthv1.Measurement, batchID string) Key {
	return keyOf(m, fmt.Sprintf("%s\x00%s\x00%s\x00%d", m.GetCandidate().GetDigest(), m.GetDevice(), batchID, m.GetCandidate().GetTrial()))
}

func keyOf(m *tilthv1.Measurement, identity string) (k Key) {
	ident := sha256.Sum256([]byte(identity))
	binary.BigEndian.PutUint64(k[:], uint64(m.GetAt().AsTime().UnixNano()))
	copy(k[8:], ident[:])
	return k
}

// After returns the next greater key; for the greatest, the zero key.
func (k Key) After() Key {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			break
		}
	}
	return k
}

// Compare orders keys. It is negative if k sorts before other, and 0 if they are equal.
func (k Key) Compare(other Key) int { return bytes.Compare(k[:], other[:]) }

// At returns the time of the key's measurement.
func (k Key) At() time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(k[:]))) }

// Member is a process that serves shards of a store.
type Member struct {
	// Address is its gRPC address: host:port or unix:PATH.
	Address string
	// Certificate is the SHA-256 of its server certificate; empty without TLS.
	Certificate []byte
	// Host identifies processes that share a loopback interface; empty if unknown.
	Host []byte
}

// PackKeys concatenates keys, as on the wire.
func PackKeys(keys []Key) []byte {
	packed := make([]byte, 0, len(keys)*len(Key{}))
	for _, k := range keys {
		packed = append(packed, k[:]...)
	}
	return packed
}

// UnpackKeys is the inverse of PackKeys. It returns ErrInvalid if the keys are incomplete or unsorted.
func UnpackKeys(packed []byte) ([]Key, error) {
	if len(packed)%len(Key{}) != 0 {
		return nil, fmt.Errorf("%w: %d bytes are not keys of %d", ErrInvalid, len(packed), len(Key{}))
	}
	keys := make([]Key, 0, len(packed)/len(Key{}))
	for one := range slices.Chunk(packed, len(Key{})) {
		k := Key(one)
		if len(keys) > 0 && k.Compare(keys[len(keys)-1]) <= 0 {
			return nil, fmt.Errorf("%w: keys are not in order", ErrInvalid)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

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
