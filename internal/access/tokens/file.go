package tokens

import (
	"log/slog"
	"slices"

	"github.com/tilth-dev/tilth/internal/disk"
)

// File is a tokens file that is read again whenever it changes. Its methods may be called concurrently.
type File struct{ files *disk.Reloaded[*Set] }

// Change is a change of a tokens file. A token with a new expiry is in both lists: the old version in Gone, the new
// one in Come.
type Change struct{ Come, Gone []Token }

// Open reads a tokens file, which must be valid now. A later invalid version is logged and ignored. changed, if set,
// is called before each valid change takes effect.
func Open(path string, log *slog.Logger, changed func(Change)) (*File, error) {
	var last *Set
	read := func() (*Set, error) {
		set, err := Read(path)
		if err != nil {
			return nil, err
		}
		if last != nil && changed != nil {
			changed(difference(last, set))
		}
		last = set
		return set, nil
	}
	files, err := disk.Reload(log, read, path)
	if err != nil {
		return nil, err
	}
	return &File{files}, nil
}

// Set returns the current tokens.
func (f *File) Set() *Set { return f.files.Get() }

func difference(before, after *Set) (c Change) {
	c.Gone = missing(before.Tokens, after)
	c.Come = missing(after.Tokens, before)
	return c
}

// missing returns the tokens of list that set does not contain unchanged.
func missing(list []Token, set *Set) []Token {
	return slices.DeleteFunc(slices.Clone(list), func(t Token) bool {
		other, is := set.byID[t.ID]
		return is && other.Name == t.Name && other.Role == t.Role && other.SHA256 == t.SHA256 && other.Expires.Equal(t.Expires)
	})
}
