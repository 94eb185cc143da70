package access

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

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
