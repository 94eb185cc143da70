package bolt

import (
	"encoding/binary"

	"github.com/tilth-dev/tilth/records"
)

const (
	groupBytes     = 4 // length of a group's number
	recordKeyBytes = groupBytes + len(records.Key{})
)

// progressKey returns job id 0 task.
func progressKey(jobID string, task uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(jobID), 0), task)
}

// eventKey returns job id 0 sequence. Rows are keyed by their last event, so the row that contains an event is the
// first at or after the event's own key.
func eventKey(jobID string, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(jobID), 0), sequence)
}

// recordKey returns group time ident.
func recordKey(number []byte, within records.Key) []byte {
	return append(append(make([]byte, 0, recordKeyBytes), number...), within[:]...)
}

// withinGroup returns the part of a record's key after the group.
func withinGroup(key []byte) (k records.Key) {
	copy(k[:], key[groupBytes:])
	return k
}
