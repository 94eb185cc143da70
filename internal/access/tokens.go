package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// TokenSet is the contents of a tokens file.
type TokenSet struct {
	Tokens []Token
	byID   map[string]Token
}

// tokensVersion is the version of the file format.
const tokensVersion = 1

// tokensDocument is the file's JSON.
type tokensDocument struct {
	Version int     `json:"version"`
	Tokens  []Token `json:"tokens"`
}

// maxTokensFileBytes bounds a tokens file: some 100,000 tokens.
const maxTokensFileBytes = 32 << 20

// ReadTokens reads a tokens file.
func ReadTokens(path string) (*TokenSet, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: make it with 'tilth tracker token create NAME --role ROLE --tokens %s'", err, path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokensFileBytes))
	if err != nil {
		return nil, err
	}
	set, err := parseTokens(text)
	if err != nil {
		return nil, fmt.Errorf("tokens file %s: %w", path, err)
	}
	return set, nil
}

func parseTokens(text []byte) (*TokenSet, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var doc tokensDocument
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%w: restore it, or make a new one with 'tilth tracker token create'", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is data after its end: restore it, or make a new one with 'tilth tracker token create'")
	}
	if doc.Version != tokensVersion {
		return nil, fmt.Errorf("it has version %d, this program knows %d: use the tilth that wrote it", doc.Version, tokensVersion)
	}
	return newTokenSet(doc.Tokens)
}

func newTokenSet(list []Token) (*TokenSet, error) {
	s := &TokenSet{Tokens: list, byID: make(map[string]Token, len(list))}
	for i, t := range list {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("tokens[%d]: %w", i, err)
		}
		if _, twice := s.byID[t.ID]; twice {
			return nil, fmt.Errorf("tokens[%d]: id %s appears twice", i, t.ID)
		}
		s.byID[t.ID] = t
	}
	return s, nil
}

func (s *TokenSet) encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(tokensDocument{Version: tokensVersion, Tokens: append([]Token{}, s.Tokens...)})
}

var (
	// ErrUnknownToken is returned for a token that never existed or was revoked.
	ErrUnknownToken = errors.New("the token is not known: it was revoked, or is of another farm")
	// ErrExpiredToken is returned for an expired token.
	ErrExpiredToken = errors.New("the token has expired")
)

// Find returns the entry of a token. Details of an invalid token are reported only to its holder.
func (s *TokenSet) Find(text string, now time.Time) (Token, error) {
	rest, _ := strings.CutPrefix(text, tokenPrefix+"_")
	id, _, _ := strings.Cut(rest, "_")
	t := s.byID[id] // the zero Token never matches
	if !t.matches(text) {
		return Token{}, ErrUnknownToken
	}
	if t.Expired(now) {
		return Token{}, ErrExpiredToken
	}
	return t, nil
}

// Valid returns an error if the token with the ID was revoked or has expired.
func (s *TokenSet) Valid(id string, now time.Time) error {
	t, is := s.byID[id]
	if !is {
		return ErrUnknownToken
	}
	if t.Expired(now) {
		return ErrExpiredToken
	}
	return nil
}

// TokenFile is a tokens file that is read again whenever it changes.
type TokenFile = filesystem.Reloaded[*TokenSet]

// TokenChange is a change of a tokens file. A token with a new expiry is in both lists: the old version in Gone, the
// new one in Come.
type TokenChange struct{ Come, Gone []Token }

// OpenTokens reads a tokens file, which must be valid now. A later invalid version is logged and ignored. changed, if
// set, is called before each valid change takes effect.
func OpenTokens(path string, log *slog.Logger, changed func(TokenChange)) (*TokenFile, error) {
	var last *TokenSet
	read := func() (*TokenSet, error) {
		set, err := ReadTokens(path)
		if err != nil {
			return nil, err
		}
		if last != nil && changed != nil {
			changed(TokenChange{Gone: missingTokens(last.Tokens, set), Come: missingTokens(set.Tokens, last)})
		}
		last = set
		return set, nil
	}
	return filesystem.Reload(log, read, path)
}

// missingTokens returns the tokens of list that set does not contain unchanged.
func missingTokens(list []Token, set *TokenSet) []Token {
	return slices.DeleteFunc(slices.Clone(list), func(t Token) bool {
		other, is := set.byID[t.ID]
		return is && other.Name == t.Name && other.Role == t.Role && other.SHA256 == t.SHA256 && other.Expires.Equal(t.Expires)
	})
}

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
	sum := sha256.Sum256([]byte(text))
	return text, Token{ID: id, Name: name, Role: role, SHA256: hex.EncodeToString(sum[:]), Created: now, Expires: expires}
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

// TokenRequest describes a token to create.
type TokenRequest struct {
	Name string
	Role Role
	// Lifetime is its validity; 0 = unlimited.
	Lifetime time.Duration
	// Retire, if positive, makes the name's earlier tokens expire after that time, unless they expire sooner.
	Retire time.Duration
}

// CreateToken adds a token to the file at path, creates the file if necessary, and returns the token, whose text is
// stored nowhere.
func CreateToken(path string, req TokenRequest, now time.Time) (string, Token, error) {
	if err := CheckName(req.Name); err != nil {
		return "", Token{}, err
	}
	now = now.UTC().Truncate(time.Second)
	var expires time.Time
	if req.Lifetime > 0 {
		expires = now.Add(req.Lifetime)
	}
	text, made := generateToken(req.Name, req.Role, now, expires)
	err := changeTokens(path, true, func(list []Token) ([]Token, error) {
		if req.Retire > 0 {
			retireTokens(list, req.Name, now.Add(req.Retire))
		}
		return append(list, made), nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return text, made, nil
}

func retireTokens(list []Token, name string, at time.Time) {
	for i, t := range list {
		if t.Name == name && (t.Expires.IsZero() || t.Expires.After(at)) {
			list[i].Expires = at
		}
	}
}

// RevokeTokens removes and returns the tokens that match; at least one must.
func RevokeTokens(path string, match func(Token) bool) ([]Token, error) {
	var gone []Token
	err := changeTokens(path, false, func(list []Token) ([]Token, error) {
		var left []Token
		for _, t := range list {
			if match(t) {
				gone = append(gone, t)
			} else {
				left = append(left, t)
			}
		}
		if len(gone) == 0 {
			return nil, fmt.Errorf("tokens file %s has no such token: see 'tilth tracker token list'", path)
		}
		return left, nil
	})
	return gone, err
}

// changeTokens replaces the file with the result of edit. Concurrent changes wait.
func changeTokens(path string, create bool, edit func([]Token) ([]Token, error)) (err error) {
	unlock, err := lockTokens(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	set, err := ReadTokens(path)
	if create && errors.Is(err, os.ErrNotExist) {
		set, err = &TokenSet{}, nil
	}
	if err != nil {
		return err
	}
	list, err := edit(slices.Clone(set.Tokens))
	if err != nil {
		return err
	}
	changed, err := newTokenSet(list)
	if err != nil {
		return err
	}
	return filesystem.WritePrivateFile(path, changed.encode)
}

// lockTokens takes an exclusive lock for changes of the file. The lock is on a second file, since the file itself is
// replaced.
func lockTokens(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}
