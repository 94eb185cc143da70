package signing

import (
	"errors"
	"fmt"
	"io"
	"os"

	"aead.dev/minisign"
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
