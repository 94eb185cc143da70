package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Token is an entry of the tokens file.
type Token struct {
	// ID identifies the token; it is part of the token's text, and not secret.
	ID string `json:"id"`
	// Name is the owner; several tokens may have the same name, so that tokens can be replaced without interruption.
	Name string `json:"name"`
	Role Role   `json:"role"`
	// SHA256 is the hash of the whole token in lower-case hexadecimal digits. The secret has 130 random bits, so no
	// slow hash is needed.
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created_at"`
	// Expires is when the token expires; zero = never.
	Expires time.Time `json:"expires_at,omitzero"`
}

// tokenPrefix begins every token, so that secret scanners recognise leaked ones.
const tokenPrefix = "tilth"

// IsToken reports whether the text has the prefix of the farm's own tokens.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenPrefix+"_") }

// tokenIDBytes is the length of an ID: 40 bits, enough to distinguish the tokens of a farm.
const tokenIDBytes = 8

// generateToken returns a new token and its entry.
func generateToken(name string, role Role, now, expires time.Time) (text string, kept Token) {
	id := strings.ToLower(rand.Text()[:tokenIDBytes])
	text = tokenPrefix + "_" + id + "_" + rand.Text()
	return text, Token{ID: id, Name: name, Role: role, SHA256: hashToken(text), Created: now, Expires: expires}
}

func hashToken(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Expired reports whether the token has expired at now.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// matches compares hashes in constant time.
func (t Token) matches(text string) bool {
	var want [sha256.Size]byte
	if n, err := hex.Decode(want[:], []byte(t.SHA256)); err != nil || n != len(want) {
		return false
	}
	got := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

func (t Token) check() error {
	if len(t.ID) != tokenIDBytes {
		return fmt.Errorf("id has %d bytes: want %d", len(t.ID), tokenIDBytes)
	}
	if err := CheckName(t.Name); err != nil {
		return err
	}
	if _, err := ParseRole(string(t.Role)); err != nil {
		return err
	}
	if b, err := hex.DecodeString(t.SHA256); err != nil || len(b) != sha256.Size {
		return errors.New("sha256 is not 64 hexadecimal digits")
	}
	return nil
}
