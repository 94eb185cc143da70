package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Group is what records are grouped by: a target's fingerprint and a workload's digest.
type Group struct{ Target, Workload string }

// Name is that of a group among all, which are in the order of targets, and of workloads within them.
func (g Group) Name() string { return g.Target + "\x00" + g.Workload }

// Key is that of a record within its group, time and identity: keys are in the order of the times at which the
// measurements were made.
type Key [wire.RecordKeyBytes]byte

// KeyOf is the key of a measurement. Two measurements of a group with the same key are the same measurement.
func KeyOf(m *tilthv1.Measurement) Key {
	return keyOf(m, m.GetCandidate().GetDigest()+"\x00"+m.GetDevice())
}

// KeyOfTrial is that of a measurement whose own key another one has: a device whose clock stands still, or who passes
// for it, measured the candidate again.
func KeyOfTrial(m *tilthv1.Measurement, batchID string) Key {
	return keyOf(m, fmt.Sprintf("%s\x00%s\x00%s\x00%d", m.GetCandidate().GetDigest(), m.GetDevice(), batchID, m.GetCandidate().GetTrial()))
}

func keyOf(m *tilthv1.Measurement, identity string) (k Key) {
	ident := sha256.Sum256([]byte(identity))
	binary.BigEndian.PutUint64(k[:], uint64(m.GetAt().AsTime().UnixNano()))
	copy(k[8:], ident[:])
	return k
}

// After is the key that follows, the least that is greater; of the greatest it is the least of all.
func (k Key) After() Key {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			break
		}
	}
	return k
}

// Compare orders keys: it is negative when k comes before other, and 0 when they are the same.
func (k Key) Compare(other Key) int { return bytes.Compare(k[:], other[:]) }

// At is when the measurement of a key was made.
func (k Key) At() time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(k[:]))) }
