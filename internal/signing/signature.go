package signing

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"
)

// Suffix follows the name of a file in the name of its signature.
const Suffix = ".minisig"

// maxCommentBytes is the longest comment that minisign reads.
const maxCommentBytes = 1024

var (
	// ErrOtherKey says that a signature is another key's.
	ErrOtherKey = errors.New("signed with another key")
	// ErrChanged says that a file, or the signature's trusted comment, is not what was signed.
	ErrChanged = errors.New("the file or its signature was changed after signing")
)

// Sign reads a file to its end, and returns the text of its signature. The comment is signed, too.
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

// Signature is a signature that was read, and not yet verified.
type Signature struct {
	text  []byte
	keyID uint64
	// comment may be shown only after verification.
	comment string
}

// ReadSignature reads the file of a signature.
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

// ParseSignature reads the text of a signature. Signatures of the kind before minisign 0.6, which do not begin with
// the digest of the file, are refused.
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

// KeyID names the key that the signature claims to be of.
func (s Signature) KeyID() string { return keyName(s.keyID) }

// Verify reads a file to its end. It returns the trusted comment if the key has signed both, and otherwise ErrOtherKey
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
