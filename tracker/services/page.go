package services

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/tracker/state"
)

// mostListBytes keeps a response below the 4 MiB that gRPC clients take unless told otherwise.
const mostListBytes = 3 << 20

// pageRequest asks for a part of a listing by name.
type pageRequest interface {
	// GetPageSize is how many items are wanted at most; 0 = as many as fit.
	GetPageSize() uint32
	// GetPageToken is the token of this page; empty = the first one.
	GetPageToken() string
}

// page lists what comes after the request's token, by name, and returns the next page's token, which is empty after
// the last one. show makes an item, or says that there is none to show. A token that no page gave out is an error.
func page[M proto.Message](
	s *Services, all func(*state.Machine) []string, req pageRequest, show func(m *state.Machine, name string) (item M, ok bool),
) (items []M, next string, err error) {
	if token := req.GetPageToken(); token != "" && !strings.HasPrefix(token, afterName) {
		return nil, "", strangeToken(token)
	}
	var names []string
	s.engine.Read(func(m *state.Machine) { names = all(m) })
	names = namesAfter(names, req.GetPageToken()) // others need not wait for that
	s.engine.Read(func(m *state.Machine) {
		most, bytes := int(req.GetPageSize()), 0
		for i, name := range names {
			item, ok := show(m, name)
			if !ok {
				continue // it may have been forgotten just now
			}
			bytes += proto.Size(item)
			if len(items) > 0 && (len(items) == most || bytes > mostListBytes) {
				next = afterName + names[i-1]
				return
			}
			items = append(items, item)
		}
	})
	return items, next, nil
}

// strangeToken refuses a page's token that was not given out.
func strangeToken(token string) error {
	return invalid("page_token", "%q is not valid: begin without one", token)
}

// afterName begins a token, which goes on with the name that the page before ended with. A name may be empty.
const afterName = ">"

// namesAfter returns the names of a page and all that follow, sorted.
func namesAfter(names []string, token string) []string {
	after := strings.TrimPrefix(token, afterName)
	names = slices.DeleteFunc(names, func(name string) bool { return token != "" && name <= after })
	slices.Sort(names)
	return names
}
