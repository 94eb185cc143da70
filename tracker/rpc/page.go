package rpc

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/tracker/state"
)

// maxListBytes keeps responses below the default limit of gRPC clients, 4 MiB.
const maxListBytes = 3 << 20

// pageRequest is a request for one page of a listing sorted by name.
type pageRequest interface {
	// GetPageSize returns the maximum number of items; 0 means as many as fit.
	GetPageSize() uint32
	// GetPageToken returns the token of the page; empty for the first.
	GetPageToken() string
}

// page returns the items after the request's token, sorted by name, and the token of the next page, which is empty
// after the last. show returns an item, or false to skip it. An invalid token is an error.
func page[M proto.Message](
	s *Services, all func(*state.Machine) []string, req pageRequest, show func(m *state.Machine, name string) (item M, ok bool),
) (items []M, next string, err error) {
	after, valid := strings.CutPrefix(req.GetPageToken(), afterName)
	if !valid && req.GetPageToken() != "" {
		return nil, "", invalidPageToken(req.GetPageToken())
	}
	var names []string
	s.coordinator.Read(func(m *state.Machine) { names = all(m) })
	slices.Sort(names) // without holding the lock
	if valid {
		names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	}
	s.coordinator.Read(func(m *state.Machine) {
		limit, bytes := int(req.GetPageSize()), 0
		for i, name := range names {
			item, ok := show(m, name)
			if !ok {
				continue // it may just have been forgotten
			}
			bytes += proto.Size(item)
			if len(items) > 0 && (len(items) == limit || bytes > maxListBytes) {
				next = afterName + names[i-1]
				return
			}
			items = append(items, item)
		}
	})
	return items, next, nil
}

// invalidPageToken returns the error for an invalid page token.
func invalidPageToken(token string) error {
	return invalid("page_token", "%q is not valid: begin without one", token)
}

// afterName is the prefix of a page token; the last name of the previous page follows. A name may be empty.
const afterName = ">"
