package access

import (
	"log/slog"
	"slices"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// TokenFile is a tokens file that is read again whenever it changes. Its methods may be called concurrently.
type TokenFile struct {
	files *filesystem.Reloaded[*TokenSet]
}

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
			changed(tokenChange(last, set))
		}
		last = set
		return set, nil
	}
	files, err := filesystem.Reload(log, read, path)
	if err != nil {
		return nil, err
	}
	return &TokenFile{files}, nil
}

// Set returns the current tokens.
func (f *TokenFile) Set() *TokenSet { return f.files.Get() }

func tokenChange(before, after *TokenSet) (c TokenChange) {
	c.Gone = missingTokens(before.Tokens, after)
	c.Come = missingTokens(after.Tokens, before)
	return c
}

// missingTokens returns the tokens of list that set does not contain unchanged.
func missingTokens(list []Token, set *TokenSet) []Token {
	return slices.DeleteFunc(slices.Clone(list), func(t Token) bool {
		other, is := set.byID[t.ID]
		return is && other.Name == t.Name && other.Role == t.Role && other.SHA256 == t.SHA256 && other.Expires.Equal(t.Expires)
	})
}
