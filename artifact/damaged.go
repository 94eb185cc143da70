package artifact

import "context"

// setAside takes a damaged artifact out of the store, unless it is another by now. What lies on a server is moved
// before, since the lock does not wait for that: its name is that of no other artifact.
func (s *Store) setAside(f *file, cause error) {
	if s.shared {
		s.moveAside(s.blobOf(f))
	}
	s.mu.Lock()
	if s.files[f.digest] != f {
		s.mu.Unlock()
		return
	}
	if !s.shared {
		s.moveAside(f.blob())
	}
	s.forget(f)
	s.stats.Dropped[droppedDamaged]++
	s.mu.Unlock()
	s.Logger.Error("artifact damaged: check the disk", "artifact", f.digest, "bytes", f.sizeBytes, "error", cause)
	s.Damaged(f.digest)
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
