package signing

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

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
