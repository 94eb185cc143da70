package artifact

import "context"

// setAside takes a damaged artifact out of the store, unless it is another by now, or is set aside already. What lies
// on a server is moved without the lock, which does not wait for servers: its name is that of no other artifact. A
// listing that sees it gone may forget it meanwhile, and somebody may store it again.
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
