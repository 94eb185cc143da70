package signing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrUnsigned means that a file has no signature beside it.
var ErrUnsigned = errors.New("it is not signed")

// OpenVerified opens a copy of a file signed by the key; the signature is FILE.minisig. The copy is in sealed
// memory, so later changes of the file have no effect. Errors name the file.
func OpenVerified(path string, key PublicKey) (*os.File, error) {
	s, err := ReadSignature(path + Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(path); missing != nil {
			return nil, missing
		}
		return nil, fmt.Errorf("%s: %w: there is no %s", path, ErrUnsigned, path+Suffix)
	}
	if err != nil {
		return nil, err
	}
	if s.keyID != key.key.ID() { // known before reading the file
		return nil, fmt.Errorf("%s is not verified: %w: %s, not %s", path, ErrOtherKey, s.KeyID(), key.ID())
	}
	file, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sealed, err := s.sealed(file, key)
	if err != nil {
		return nil, fmt.Errorf("%s is not verified: %w", path, err)
	}
	return sealed, nil
}

// sealed returns a verified copy of a file. It allocates memory only after the file has been verified, and
// then verifies the copy, because the file may have changed meanwhile.
func (s Signature) sealed(file *os.File, key PublicKey) (*os.File, error) {
	if _, err := s.Verify(file, key); err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	sealed, err := Sealed(file, size)
	if err != nil {
		return nil, err
	}
	if _, err = s.Verify(sealed, key); err == nil {
		_, err = sealed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, sealed.Close())
	}
	return sealed, nil
}

// OpenRegular opens a regular file that may be signed or part of an export. It does not block on a pipe.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Sealed copies at most the given number of bytes of in to sealed memory. The copy is positioned at its start
// and immutable.
func Sealed(in io.Reader, limit int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("tilth-verified", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for a copy: %w", err)
	}
	f := os.NewFile(uintptr(fd), "tilth-verified")
	_, err = io.Copy(f, io.LimitReader(in, limit))
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy to memory: %w", err), f.Close())
	}
	return f, nil
}
