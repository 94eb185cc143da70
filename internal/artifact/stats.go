package artifact

import (
	"errors"
	"maps"
	"time"
)

// Reasons for which files are dropped.
const (
	droppedForRoom = "room"
	droppedUnused  = "unused"
	droppedPart    = "part"
	droppedDamaged = "damaged"
)

// Reasons for which uploads are refused.
const (
	refusedForRoom = "room"
	refusedUploads = "uploads"
)

// Stats are the contents of a store, and its activity since it was opened.
type Stats struct {
	// Files are the artifacts that are known; Uploads what is unfinished, under way or broken off.
	Files, Uploads int
	// UsedBytes is the room of both, UnfinishedBytes that of the latter.
	UsedBytes, UnfinishedBytes int64
	// Dropped counts files by why they went: room, unused, part (an upload that was not resumed), damaged.
	Dropped map[string]int64
	// Refused counts uploads that were refused: for want of room, and for other uploads of the same identity.
	Refused map[string]int64
	// CheckedBytes were read and compared with their digests.
	CheckedBytes int64
	// OldestCheck is when the artifact was checked that was checked longest ago: when the store was opened where it
	// is not known, now where there are none.
	OldestCheck time.Time
	// Away says that the server of an object store did not do what it was asked when it was asked last.
	Away bool
}

func newStats() Stats {
	return Stats{
		Dropped: map[string]int64{droppedForRoom: 0, droppedUnused: 0, droppedPart: 0, droppedDamaged: 0},
		Refused: map[string]int64{refusedForRoom: 0, refusedUploads: 0},
	}
}

// countRefusal counts an upload that ended with an error, if it was refused.
func (s *Store) countRefusal(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, ErrBusy):
		s.stats.Refused[refusedUploads]++
	case errors.Is(err, ErrFull):
		s.stats.Refused[refusedForRoom]++
	}
}

// Stats returns what the store has now.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Dropped, out.Refused = maps.Clone(s.stats.Dropped), maps.Clone(s.stats.Refused)
	out.Files, out.UsedBytes = len(s.files), s.used
	for _, a := range s.owners {
		out.Uploads += a.uploads
		out.UnfinishedBytes += a.unfinished
	}
	out.OldestCheck = s.Now()
	out.Away = s.away != nil
	for digest, f := range s.files {
		if at := later(f.checked, s.opened); at.Before(out.OldestCheck) && s.mine(digest) {
			out.OldestCheck = at
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
