package artifact

import (
	"container/list"
	"fmt"
)

// account is what an identity has in the store, but for artifacts that are pinned: those are needed.
type account struct {
	// Files that may go, least recently used first.
	artifacts, parts list.List
	// loose is the room of these, and of uploads under way; unfinished that of all uploads.
	loose, unfinished int64
	uploads           int
}

// oldest is what an account loses first; nil when there is nothing.
func (s *Store) oldest(a *account) *file {
	artifact, part := front(&a.artifacts), front(&a.parts)
	if artifact != nil && !s.mayGo(artifact) {
		artifact = nil
	}
	if artifact == nil || part != nil && part.used.Before(artifact.used) {
		return part
	}
	return artifact
}

func front(l *list.List) *file {
	if l.Len() == 0 {
		return nil
	}
	return l.Front().Value.(*file)
}

// pushByUse puts a file where its last use belongs: mostly at the end.
func pushByUse(l *list.List, f *file) *list.Element {
	for e := l.Back(); e != nil; e = e.Prev() {
		if !e.Value.(*file).used.After(f.used) {
			return l.InsertAfter(f, e)
		}
	}
	return l.PushFront(f)
}

// account returns an owner's, which it makes when there is none.
func (s *Store) account(owner string) *account {
	a := s.owners[owner]
	if a == nil {
		a = &account{}
		s.owners[owner] = a
	}
	return a
}

// tidy forgets an account that has nothing.
func (s *Store) tidy(owner string) {
	if a := s.owners[owner]; a != nil && a.artifacts.Len() == 0 && a.loose == 0 && a.uploads == 0 {
		delete(s.owners, owner)
	}
}

// release lets a file go when its room is needed. The caller holds the lock, as of all that follows.
func (s *Store) release(f *file) {
	if f.place != nil {
		return
	}
	a := s.account(f.owner)
	if f.upload != nil {
		f.place = a.parts.PushBack(f)
		return
	}
	f.place = pushByUse(&a.artifacts, f)
	a.loose += f.room
}

// hold has a file stay.
func (s *Store) hold(f *file) {
	if f.place == nil {
		return
	}
	a := s.owners[f.owner]
	place := f.place
	f.place = nil
	if f.upload != nil {
		a.parts.Remove(place)
		return
	}
	a.artifacts.Remove(place)
	a.loose -= f.room
	s.tidy(f.owner)
}

// add counts an artifact, in the place of what is known of it by another name: others may have put it meanwhile.
func (s *Store) add(f *file) {
	if other := s.files[f.digest]; other != nil {
		s.forget(other)
	}
	s.files[f.digest] = f
	f.entered = s.Now()
	if s.mine(f.digest) {
		f.room = roomOf(f.sizeBytes)
	}
	s.used += f.room
	if s.pins[f.digest] == 0 {
		s.release(f)
	}
}

// uncount has an artifact take no room.
func (s *Store) uncount(f *file) {
	s.used -= f.room
	if f.place != nil {
		s.owners[f.owner].loose -= f.room
	}
	f.room = 0
}

// forget counts a file no longer.
func (s *Store) forget(f *file) {
	s.hold(f)
	s.used -= f.room
	if f.upload != nil {
		s.forgetUpload(f.upload)
		return
	}
	delete(s.files, f.digest)
}

// greedy is the fraction of the cap up to which uploads push out whatever is there, the largest holder's first.
const greedy = 16

// makeRoom drops files until need more bytes fit, for an owner. What can never fit drops nothing.
func (s *Store) makeRoom(owner string, need int64) error {
	if need > s.CapBytes {
		return s.noRoom(need)
	}
	for need > s.CapBytes-s.used {
		f := s.victim(owner, need)
		if f == nil {
			return s.noRoom(need)
		}
		s.drop(f, droppedForRoom)
	}
	return nil
}

// victim is what goes first when an owner needs more room: the oldest of who has most. An owner that would have more
// than its greedy part of the store, and more than anybody who has something to lose, loses its own.
func (s *Store) victim(owner string, need int64) *file {
	var largest *account
	var who string
	for name, a := range s.owners {
		if s.oldest(a) == nil {
			continue
		}
		if largest == nil || a.loose > largest.loose || a.loose == largest.loose && name < who {
			largest, who = a, name
		}
	}
	if largest == nil {
		return nil
	}
	if own := s.owners[owner]; own != nil && own.loose+need > max(s.CapBytes/greedy, largest.loose) {
		return s.oldest(own)
	}
	return s.oldest(largest)
}

func (s *Store) noRoom(need int64) error {
	return fmt.Errorf("%w: %s may hold %d bytes, %d are in use and %d more are needed: raise the cap",
		ErrFull, s.blobs, s.CapBytes, s.used, need)
}
