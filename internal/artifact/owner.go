package artifact

import (
	"container/list"
	"fmt"
)

// account is an identity's use of the store, without pinned artifacts, which are needed.
type account struct {
	// artifacts and parts hold the files that may be dropped, least recently used first.
	artifacts, parts list.List
	// loose is the space of these files and of uploads in progress; unfinished is the space of all uploads.
	loose, unfinished int64
	uploads           int
}

// oldest returns the file that an account loses first, or nil.
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

// pushByUse inserts a file in the order of last use: usually at the end.
func pushByUse(l *list.List, f *file) *list.Element {
	for e := l.Back(); e != nil; e = e.Prev() {
		if !e.Value.(*file).used.After(f.used) {
			return l.InsertAfter(f, e)
		}
	}
	return l.PushFront(f)
}

// account returns an owner's account, and creates it if necessary.
func (s *Store) account(owner string) *account {
	a := s.owners[owner]
	if a == nil {
		a = &account{}
		s.owners[owner] = a
	}
	return a
}

// tidy removes an empty account.
func (s *Store) tidy(owner string) {
	if a := s.owners[owner]; a != nil && a.artifacts.Len() == 0 && a.loose == 0 && a.uploads == 0 {
		delete(s.owners, owner)
	}
}

// release makes a file droppable. s.mu must be held, as for all following methods.
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

// hold makes a file stay.
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

// add accounts for an artifact, and replaces its entry under another name: other stores may have stored it meanwhile.
func (s *Store) add(f *file) {
	if other := s.files[f.digest]; other != nil {
		s.forget(other)
	}
	s.files[f.digest] = f
	f.entered = s.Now()
	if s.ownsPart(f.digest) {
		f.room = roomOf(f.sizeBytes)
	}
	s.used += f.room
	if s.pins[f.digest] == 0 {
		s.release(f)
	}
}

// uncount removes an artifact's space from the totals.
func (s *Store) uncount(f *file) {
	s.used -= f.room
	if f.place != nil {
		s.owners[f.owner].loose -= f.room
	}
	f.room = 0
}

// forget removes a file from the accounts.
func (s *Store) forget(f *file) {
	s.hold(f)
	s.used -= f.room
	if f.upload != nil {
		s.forgetUpload(f.upload)
		return
	}
	delete(s.files, f.digest)
}

// greedyShare is the fraction of the cap up to which an owner's uploads evict files of any owner, the largest first.
const greedyShare = 16

// makeRoom drops files until need more bytes fit, for an owner. It drops nothing if need exceeds the cap.
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

// victim returns the file to drop when an owner needs space: the oldest of the largest account. An owner that would
// exceed both its greedy share of the store and the largest account loses its own files.
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
	if own := s.owners[owner]; own != nil && own.loose+need > max(s.CapBytes/greedyShare, largest.loose) {
		return s.oldest(own)
	}
	return s.oldest(largest)
}

func (s *Store) noRoom(need int64) error {
	return fmt.Errorf("%w: %s may hold %d bytes, %d are in use and %d more are needed: raise the cap",
		ErrFull, s.blobs, s.CapBytes, s.used, need)
}
