package artifact

import "context"

// setAside removes a damaged artifact from the store, unless it was replaced or set aside already. An object in a
// shared store is moved without holding the lock, which must not wait for servers; no other artifact ever has its
// name. Meanwhile a listing may forget the artifact, and it may be stored again.
func (s *Store) setAside(f *file, cause error) {
	s.mu.Lock()
	if f.aside || s.files[f.digest] != f {
		s.mu.Unlock()
		return
	}
	f.aside = true
	if s.shared {
		b := f.blob()
		s.mu.Unlock()
		s.moveAside(b)
		s.mu.Lock()
	} else {
		s.moveAside(f.blob())
	}
	now := s.files[f.digest]
	if now == f {
		s.forget(f)
	}
	s.stats.Dropped[droppedDamaged]++
	s.mu.Unlock()
	s.Logger.Error("artifact damaged: check the disk", "artifact", f.digest, "bytes", f.sizeBytes, "error", cause)
	if now == nil || now == f {
		s.Damaged(f.digest)
	}
}

func (s *Store) moveAside(b Blob) {
	err := s.blobs.SetAside(context.Background(), b)
	if err == nil {
		return
	}
	s.Logger.Warn("damaged artifact not kept", "artifact", b.Digest, "error", err)
	if s.shared {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.removeBlob(b)
}
