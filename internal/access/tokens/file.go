package tokens

import (
	"log/slog"
	"slices"

	"github.com/tilth-dev/tilth/internal/reload"
)

// File is a tokens file that is read again whenever it changes. Its methods may be called from many goroutines.
type File struct{ files *reload.Files[*Set] }

// Change is how a tokens file changed. A token whose expiry changed is both in Gone, as it was, and in Come.
type Change struct{ Come, Gone []Token }

// Open reads a tokens file, which has to be good now. When a later change makes no sense, the tokens before it stay,
// and the log says so. Changed, when set, is called with each later change that does, before it is in force.
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
	files, err := reload.New(log, read, path)
	if err != nil {
		return nil, err
	}
	return &File{files}, nil
}

// Set returns the tokens as the file has them now.
func (f *File) Set() *Set { return f.files.Get() }

func difference(before, after *Set) (c Change) {
	c.Gone = missing(before.Tokens, after)
	c.Come = missing(after.Tokens, before)
	return c
}

// missing are those of a list that a set does not have as they are.
func missing(list []Token, set *Set) []Token {
	return slices.DeleteFunc(slices.Clone(list), func(t Token) bool {
		other, is := set.byID[t.ID]
		return is && other.Name == t.Name && other.Role == t.Role && other.SHA256 == t.SHA256 && other.Expires.Equal(t.Expires)
	})
}
