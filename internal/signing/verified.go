package signing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrUnsigned says that a file has no signature beside it.
var ErrUnsigned = errors.New("it is not signed")

// OpenVerified opens a copy of a file that the key has signed; the signature is FILE.minisig. The copy lies in memory,
// where nobody can change it any more, so that what is read is what was verified, whatever becomes of the file. An
// error names the file.
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
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if s.keyID != key.key.ID() { // which is known before the file is read
		return nil, fmt.Errorf("%s is not verified: %w: %s, not %s", path, ErrOtherKey, s.KeyID(), key.ID())
	}
	sealed, err := Sealed(file)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", path, err)
	}
	if _, err = s.Verify(sealed, key); err == nil {
		_, err = sealed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not verified: %w", path, err), sealed.Close())
	}
	return sealed, nil
}

// Sealed is a copy in memory of what in has, at its beginning, which nobody can change.
func Sealed(in io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate("tilth-verified", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for a copy: %w", err)
	}
	f := os.NewFile(uintptr(fd), "tilth-verified")
	_, err = io.Copy(f, in)
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
