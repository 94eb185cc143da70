package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/access"
)

// Token is a token as the file has it.
type Token struct {
	// ID names the token among all; it is a part of the token, and no secret.
	ID string `json:"id"`
	// Name is whose it is; several tokens may have one name, so that one can replace another without a pause.
	Name string      `json:"name"`
	Role access.Role `json:"role"`
	// SHA256 is the hash of the whole token as lower-case hexadecimal digits. The secret in it has 130 random bits, so
	// no slower hash is needed.
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created_at"`
	// Expires is when it ends to be valid; zero = never.
	Expires time.Time `json:"expires_at,omitzero"`
}

// prefix begins every token, so that scanners of repositories and logs recognise a leaked one.
const prefix = "tilth"

// Looks says whether a text looks like a token of a farm's own, if only because it begins like one.
func Looks(text string) bool { return strings.HasPrefix(text, prefix+"_") }

// idBytes is the length of an ID: 40 bits tell the tokens of a farm apart.
const idBytes = 8

// generate makes a token, and what the file keeps of it.
func generate(name string, role access.Role, now, expires time.Time) (text string, kept Token) {
	id := strings.ToLower(rand.Text()[:idBytes])
	text = prefix + "_" + id + "_" + rand.Text()
	return text, Token{ID: id, Name: name, Role: role, SHA256: hash(text), Created: now, Expires: expires}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Expired says whether the token's time is over.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// matches compares in a time that does not depend on where the hashes differ.
func (t Token) matches(text string) bool {
	var want [sha256.Size]byte
	if n, err := hex.Decode(want[:], []byte(t.SHA256)); err != nil || n != len(want) {
		return false
	}
	got := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

func (t Token) check() error {
	if len(t.ID) != idBytes {
		return fmt.Errorf("id has %d bytes: want %d", len(t.ID), idBytes)
	}
	if err := access.CheckName(t.Name); err != nil {
		return err
	}
	if _, err := access.ParseRole(string(t.Role)); err != nil {
		return err
	}
	if b, err := hex.DecodeString(t.SHA256); err != nil || len(b) != sha256.Size {
		return errors.New("sha256 is not 64 hexadecimal digits")
	}
	return nil
}
