package web

import (
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tasksOfPage is how many tasks of a job a page shows: a job has up to thousands.
const tasksOfPage = 200

// part is the part of a job's tasks that a page shows.
type part struct {
	// First and Last are the numbers of tasks, from 1; All is how many there are.
	First, Last, All int
	// Previous and Next lead to the parts beside it; empty = there is none.
	Previous, Next string
}

// partOf is the part that a request asks for by the number of its first task; by default the first part.
func partOf(r *http.Request, all int) (part, error) {
	p := part{First: 1, All: all}
	if text := r.URL.Query().Get("from"); text != "" {
		var err error
		if p.First, err = strconv.Atoi(text); err != nil || p.First < 1 || p.First > max(all, 1) {
			return part{}, status.Errorf(codes.InvalidArgument, "from %q is not the number of a task, from 1 to %d", text, all)
		}
	}
	p.Last = min(all, p.First-1+tasksOfPage)
	at := func(first int) string {
		q := r.URL.Query()
		q.Set("from", strconv.Itoa(first))
		return "?" + q.Encode()
	}
	if p.First > 1 {
		p.Previous = at(max(1, p.First-tasksOfPage))
	}
	if p.Last < all {
		p.Next = at(p.Last + 1)
	}
	return p, nil
}

// of are the elements, one a task, that belong to the part.
func of[T any](p part, all []T) []T { return all[p.First-1 : p.Last] }
