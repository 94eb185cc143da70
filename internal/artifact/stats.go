package artifact

import (
	"errors"
	"maps"
	"time"
)

// Reasons for drops.
const (
	droppedForRoom = "room"
	droppedUnused  = "unused"
	droppedPart    = "part"
	droppedDamaged = "damaged"
)

// Reasons for refusals of uploads.
const (
	refusedForRoom = "room"
	refusedUploads = "uploads"
)

// Stats describes the contents of a store, and its activity since it was opened.
type Stats struct {
	// Files counts the known artifacts, Uploads the unfinished uploads, in progress or interrupted.
	Files, Uploads int
	// UsedBytes is the space of both, UnfinishedBytes that of the uploads.
	UsedBytes, UnfinishedBytes int64
	// Dropped counts dropped files by reason: room, unused, part (an upload that was not resumed), damaged.
	Dropped map[string]int64
	// Refused counts refused uploads by reason: lack of space, or too many uploads of the identity.
	Refused map[string]int64
	// CheckedBytes counts the bytes verified.
	CheckedBytes int64
	// OldestCheck is the verification time of the least recently verified artifact: when the store was opened if
	// unknown, now if there are no artifacts.
	OldestCheck time.Time
	// Away reports whether the last request to the object store failed.
	Away bool
}

func newStats() Stats {
	return Stats{
		Dropped: map[string]int64{droppedForRoom: 0, droppedUnused: 0, droppedPart: 0, droppedDamaged: 0},
		Refused: map[string]int64{refusedForRoom: 0, refusedUploads: 0},
	}
}

// countRefusal counts an upload that was refused.
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

// Stats returns the current statistics.
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
		if at := later(f.checked, s.opened); at.Before(out.OldestCheck) && s.ownsPart(digest) {
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
