package signing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"aead.dev/minisign"
	"golang.org/x/sys/unix"
)

// maxKeyBytes bounds the file of a key or a signature, which has a few hundred bytes.
const maxKeyBytes = 16 << 10

// PrivateKey signs files.
type PrivateKey struct{ key minisign.PrivateKey }

// PublicKey verifies signatures.
type PublicKey struct{ key minisign.PublicKey }

// Public returns the corresponding public key.
func (k PrivateKey) Public() PublicKey { return PublicKey{k.key.Public().(minisign.PublicKey)} }

// ID returns the random id of the key pair. It proves nothing.
func (k PublicKey) ID() string { return keyName(k.key.ID()) }

// String returns the key in the format of minisign's command line.
func (k PublicKey) String() string { return k.key.String() }

// keyName formats a key id like minisign.
func keyName(id uint64) string { return fmt.Sprintf("%016X", id) }

// ReadPrivateKey reads a file written by 'minisign -G'. It calls password only if the key is encrypted.
func ReadPrivateKey(path string, password func() (string, error)) (PrivateKey, error) {
	text, err := readSmall(path)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read the secret key: %w", err)
	}
	var plain minisign.PrivateKey
	failed := plain.UnmarshalText(text)
	if failed == nil {
		return PrivateKey{plain}, nil
	}
	if !minisign.IsEncrypted(text) {
		return PrivateKey{}, fmt.Errorf("%s is not a secret key of minisign (%s): make one with 'minisign -G'", path, failed)
	}
	secret, err := password()
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%s is encrypted: %w", path, err)
	}
	key, err := minisign.DecryptKey(secret, text)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%s: the password is wrong, or the key is damaged", path)
	}
	return PrivateKey{key}, nil
}

// ReadPublicKey reads a public key file: as written by 'minisign -G', or only the key.
func ReadPublicKey(path string) (PublicKey, error) {
	text, err := readSmall(path)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read the public key: %w", err)
	}
	key, err := ParsePublicKey(string(text))
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// ParsePublicKey parses a public key, with or without minisign's comment.
func ParsePublicKey(text string) (PublicKey, error) {
	var key minisign.PublicKey
	if err := key.UnmarshalText([]byte(text)); err != nil {
		return PublicKey{}, fmt.Errorf("no public key of minisign (%w): want one that begins with RW", err)
	}
	return PublicKey{key}, nil
}

// readSmall reads a file of bounded size.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// readAll reads an open file of bounded size.
func readAll(f *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
	if err == nil && len(text) > maxKeyBytes {
		err = errors.New("it is too large for a key or a signature")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return text, nil
}

// Suffix is appended to the name of a file to name its signature.
const Suffix = ".minisig"

// maxCommentBytes is the longest comment that minisign reads.
const maxCommentBytes = 1024

var (
	// ErrOtherKey means that another key made the signature.
	ErrOtherKey = errors.New("signed with another key")
	// ErrChanged means that the file or the trusted comment differs from what was signed.
	ErrChanged = errors.New("the file or its signature was changed after signing")
)

// Sign reads a file to its end and returns the text of its signature, which covers the comment.
func Sign(file io.Reader, key PrivateKey, comment string) ([]byte, error) {
	if len(comment) > maxCommentBytes || strings.ContainsAny(comment, "\r\n") {
		return nil, fmt.Errorf("the comment has a line break or more than %d bytes", maxCommentBytes)
	}
	digest := minisign.NewReader(file)
	if _, err := io.Copy(io.Discard, digest); err != nil {
		return nil, err
	}
	return digest.SignWithComments(key.key, comment, "signature from key "+key.Public().ID()), nil
}

// Signature is a parsed, unverified signature.
type Signature struct {
	text  []byte
	keyID uint64
	// comment must not be shown before verification.
	comment string
}

// ReadSignature reads a signature file.
func ReadSignature(path string) (Signature, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return Signature{}, fmt.Errorf("read the signature: %w", err)
	}
	defer f.Close()
	text, err := readAll(f)
	if err != nil {
		return Signature{}, fmt.Errorf("read the signature: %w", err)
	}
	s, err := ParseSignature(text)
	if err != nil {
		return Signature{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ParseSignature parses a signature. It rejects signatures made before minisign 0.6, which are not prehashed.
func ParseSignature(text []byte) (Signature, error) {
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return Signature{}, fmt.Errorf("no signature of minisign: %w", err)
	}
	if s.Algorithm != minisign.HashEdDSA {
		return Signature{}, errors.New("a signature of minisign's old kind: sign again without -l")
	}
	return Signature{text, s.KeyID, s.TrustedComment}, nil
}

// KeyID returns the id of the claimed key.
func (s Signature) KeyID() string { return keyName(s.keyID) }

// Verify reads a file to its end. It returns the trusted comment if the key signed both, or else ErrOtherKey
// or ErrChanged.
func (s Signature) Verify(file io.Reader, key PublicKey) (comment string, err error) {
	if s.keyID != key.key.ID() {
		return "", fmt.Errorf("%w: %s, not %s", ErrOtherKey, s.KeyID(), key.ID())
	}
	digest := minisign.NewReader(file)
	if _, err := io.Copy(io.Discard, digest); err != nil {
		return "", err
	}
	if !digest.Verify(key.key, s.text) {
		return "", ErrChanged
	}
	return s.comment, nil
}

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
