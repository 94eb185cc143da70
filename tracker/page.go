package tracker

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
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
// the last one. show makes an item, or says that there is none to show; it is called under the tracker's lock. A token
// that no page gave out is an error.
func page[V any, M proto.Message](t *Tracker, of map[string]V, req pageRequest, show func(name string, v V) (item M, ok bool)) (items []M, next string, err error) {
	if token := req.GetPageToken(); token != "" && !strings.HasPrefix(token, afterName) {
		return nil, "", strangeToken(token)
	}
	names := namesAfter(t, of, req.GetPageToken())
	t.mu.Lock()
	defer t.mu.Unlock()
	most, bytes := int(req.GetPageSize()), 0
	for i, name := range names {
		v, there := of[name]
		if !there {
			continue // forgotten just now
		}
		item, ok := show(name, v)
		if !ok {
			continue
		}
		bytes += proto.Size(item)
		if len(items) > 0 && (len(items) == most || bytes > mostListBytes) {
			return items, afterName + names[i-1], nil
		}
		items = append(items, item)
	}
	return items, "", nil
}

// strangeToken refuses a page's token that was not given out.
func strangeToken(token string) error {
	return invalid("page_token", "%q is none that was given out: begin without one", token)
}

// afterName begins a token, which goes on with the name that the page before ended with. A name may be empty.
const afterName = ">"

// namesAfter returns the names of a page and all that follow, sorted, which it does without the tracker's lock.
func namesAfter[V any](t *Tracker, of map[string]V, token string) (names []string) {
	after := strings.TrimPrefix(token, afterName)
	t.mu.Lock()
	for name := range of {
		if token == "" || name > after {
			names = append(names, name)
		}
	}
	t.mu.Unlock()
	slices.Sort(names)
	return names
}
